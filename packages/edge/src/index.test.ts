import { type Decision, decisionOf, type RateLimitOptions, rateLimit, withRateLimit } from './index.js'

const base: RateLimitOptions = {
  limit: 1,
  window: '1d',
  algorithm: 'fixed-window',
  address: () => '10.1.2.3',
}
const ask = (init: RequestInit = {}): Request => new Request('https://a.example/', init)
const answering = (response: () => Response | Promise<Response>, options: RateLimitOptions = {}) =>
  withRateLimit(response, { ...base, limit: 9, ...options })

describe('withRateLimit', () => {
  test('serves what the limit admits, with what the runtime hands to its handlers', async () => {
    const seen: unknown[] = []
    const limited = withRateLimit(
      (request: Request, env: { name: string }, context: object) => {
        seen.push([request, env, context, decisionOf(request)?.remaining])
        return new Response(env.name)
      },
      base as RateLimitOptions<[{ name: string }, object]>,
    )
    const request = ask()
    const served = await limited(request, { name: 'env' }, {})
    expect(await served.text()).toBe('env')
    expect(served.headers.get('ratelimit')).toMatch(/^"1-per-1d";r=0;t=\d+$/)
    const denied = await limited(ask(), { name: 'env' }, {})
    expect(denied.status).toBe(429)
    expect(denied.headers.get('content-type')).toBe('application/problem+json')
    expect(await denied.json()).toMatchObject({ status: 429, 'violated-policies': ['1-per-1d'] })
    expect(seen).toEqual([[request, { name: 'env' }, {}, 0]])
  })

  test('has its limiter for everything that is not a request', async () => {
    const limited = withRateLimit(() => new Response('ok'), base)
    await limited(ask())
    await limited.limiter.reset('ip:10.1.2.3')
    expect((await limited(ask())).status).toBe(200)
  })

  test('has decided nothing about a request that it has not met', () => {
    expect(decisionOf(ask())).toBeUndefined()
  })

  const mistakes: [what: string, make: () => unknown, option: string][] = [
    ['a handler that is none', () => withRateLimit('ok' as never, base), 'handler'],
    ['another handler that is none', () => rateLimit(base)(undefined as never), 'handler'],
    ['no options', () => withRateLimit(() => new Response(), undefined as never), 'limit'],
    ['an address that is no function', () => rateLimit({ ...base, address: '1.1.1.1' as never }), 'address'],
    ['headers that are none', () => rateLimit({ ...base, refusalHeaders: { 'a b': 'c' } }), 'refusalHeaders'],
    [
      'headers of a reply that is not sent',
      () => rateLimit({ ...base, refusalHeaders: {}, onLimited: () => undefined }),
      'refusalHeaders',
    ],
    ['an option that nobody knows', () => rateLimit({ ...base, limt: 1 } as RateLimitOptions), 'limt'],
  ]

  test.each(mistakes)('refuses %s at once', (_, make, option) => {
    expect(make).toThrow(expect.objectContaining({ name: 'SluiceError', path: [option] }))
  })
})

describe('rateLimit', () => {
  test('counts the requests of several handlers together', async () => {
    const limited = rateLimit({ ...base, limit: 2 })
    const [one, two] = [limited(() => new Response('1')), limited(() => new Response('2'))]
    const statuses = [await one(ask()), await two(ask()), await one(ask()), await two(ask())].map(
      ({ status }) => status,
    )
    expect(statuses).toEqual([200, 200, 429, 429])
  })
})

describe('a response', () => {
  test.each<[what: string, make: () => Response | Promise<Response>, status: number]>([
    ['of fetch', () => fetch('data:text/plain,hello'), 200],
    ['that redirects', () => Response.redirect('https://a.example/next', 307), 307],
  ])(
    '%s, which cannot be written to, is copied with its status, headers and body',
    async (_, make, status) => {
      const [original, told] = [await make(), await answering(make)(ask())]
      expect(told.status).toBe(status)
      expect(told.headers.get('ratelimit-remaining')).toBe('8')
      for (const [name, value] of original.headers) expect(told.headers.get(name)).toBe(value)
      expect(await told.text()).toBe(await original.text())
    },
  )

  test('that cannot be copied either goes out as it is', async () => {
    const original = Response.error()
    expect(await answering(() => original)(ask())).toBe(original)
  })

  test.each([204, 205, 304])('of status %d, which has no body, is told of the limit', async (status) => {
    const told = await answering(() => new Response(null, { status }))(ask())
    expect([told.status, told.body, told.headers.get('ratelimit-remaining')]).toEqual([status, null, '8'])
  })

  test('that is none, as of a request that Bun has made a WebSocket, is passed on', async () => {
    expect(await answering(() => undefined as unknown as Response)(ask())).toBeUndefined()
  })

  test('keeps its body, which is not touched', async () => {
    const original = new Response(new ReadableStream())
    const told = await answering(() => original)(ask())
    expect(told).toBe(original)
    expect(original.bodyUsed || original.body?.locked).toBe(false)
  })

  test('keeps each of its cookies', async () => {
    const original = new Response(null, { status: 404 })
    original.headers.append('set-cookie', 'a=1')
    original.headers.append('set-cookie', 'b=2')
    const limited = answering(() => original)
    for (let i = 0; i < 2; i++) {
      const told = await limited(ask())
      expect(told.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
    }
  })

  test('that a handler gives again and again tells each request of its own numbers, and of no others', async () => {
    const notFound = new Response(null, { status: 404, headers: { 'RateLimit-Policy': '"cdn";q=9;w=1' } })
    const limited = answering(() => notFound, { skip: (request) => request.headers.has('x-skip') })
    const told = [await limited(ask()), await limited(ask()), await limited(ask())]
    expect(told.map(({ headers }) => headers.get('ratelimit-remaining'))).toEqual(['8', '7', '6'])
    expect(new Set(told.map(({ headers }) => headers.get('ratelimit-policy')))).toEqual(
      new Set(['"cdn";q=9;w=1, "9-per-1d";q=9;w=86400']),
    )
  })

  test('of limiters inside of each other tells of all, once', async () => {
    const inner = withRateLimit(() => new Response('ok'), { ...base, name: 'inner', limit: 5 })
    const outer = withRateLimit(inner, { ...base, name: 'outer', limit: 9 })
    const { headers } = await outer(ask())
    expect(headers.get('ratelimit-policy')).toBe('"outer";q=9;w=86400, "inner";q=5;w=86400')
    expect(headers.get('ratelimit-remaining')).toBe('4')
  })
})

describe('a response of limiters that were given two requests', () => {
  test('keeps what the inner one tells beside what the outer one does', async () => {
    const inner = withRateLimit(() => new Response('ok'), { ...base, name: 'inner', limit: 1 })
    const outer = withRateLimit((request) => inner(new Request(request)), {
      ...base,
      name: 'outer',
      limit: 9,
    })
    const policies = '"inner";q=1;w=86400, "outer";q=9;w=86400'
    expect((await outer(ask())).headers.get('ratelimit-policy')).toBe(policies)
    const denied = await outer(ask())
    expect(denied.status).toBe(429)
    expect(denied.headers.get('ratelimit-policy')).toBe(policies)
    expect(Number(denied.headers.get('retry-after'))).toBeGreaterThan(0)
  })
})

describe('a denied request', () => {
  const deny = (options: RateLimitOptions = {}) =>
    withRateLimit(() => new Response('ok'), { ...base, limit: 0, ...options })

  test('of HEAD is answered without a body, with the headers of a GET', async () => {
    const limited = deny()
    const [get, head] = [await limited(ask()), await limited(ask({ method: 'HEAD' }))]
    expect(head.body).toBeNull()
    expect([...head.headers]).toEqual([...get.headers])
    expect(head.headers.get('content-length')).toBe(String((await get.arrayBuffer()).byteLength))
  })

  test('is answered by onLimited, whose reply is told of the limit', async () => {
    const onLimited = (_: Request, decision: Decision): Response =>
      Response.redirect(`https://a.example/${decision.reason}`, 302)
    const told = await deny({ onLimited: onLimited as NonNullable<RateLimitOptions['onLimited']> })(ask())
    expect(told.headers.get('location')).toBe('https://a.example/cost')
    expect(told.headers.get('ratelimit-limit')).toBe('0')
  })

  test('is answered by Sluice where onLimited leaves it to it', async () => {
    expect((await deny({ onLimited: async () => undefined })(ask())).status).toBe(429)
  })

  test.each<[what: string, refusalHeaders: NonNullable<RateLimitOptions['refusalHeaders']>]>([
    ['fixed', { 'Access-Control-Allow-Origin': '*' }],
    ['a function of the request', () => new Headers({ 'Access-Control-Allow-Origin': '*' })],
  ])('is answered with the headers that its user adds, %s', async (_, refusalHeaders) => {
    const { headers } = await deny({ refusalHeaders })(ask())
    expect(headers.get('access-control-allow-origin')).toBe('*')
    expect(headers.get('access-control-expose-headers')).toContain('RateLimit-Policy')
  })

  test('whose client has left is answered by nobody', async () => {
    const onLimited = jest.fn()
    const request = ask({ signal: AbortSignal.abort() })
    expect((await deny({ onLimited })(request)).status).toBe(499)
    expect(onLimited).not.toHaveBeenCalled()
  })
})

type Body = ConstructorParameters<typeof Response>[0]

describe('refundWhen', () => {
  const remainingAfter = async (use: (response: Response) => unknown, body?: Body): Promise<number> => {
    const limited = answering(() => new Response(body ?? null), { refundWhen: () => true })
    const response = await limited(ask())
    await use(response)
    // A refund is begun when the response has ended, and made in turns after that.
    for (let i = 0; i < 5; i++) await new Promise(setImmediate)
    return (await limited.limiter.peek({ key: 'ip:10.1.2.3', cost: 0 })).remaining
  }
  const failing = (): ReadableStream =>
    new ReadableStream({
      pull(controller) {
        controller.error(new Error('broken'))
      },
    })

  test.each<[what: string, use: (response: Response) => unknown, body: Body, remaining: number]>([
    ['is asked once the body was read', (response) => response.text(), 'body', 9],
    ['is not asked before', () => {}, 'body', 8],
    ['is asked at once where there is no body', () => {}, undefined, 9],
    ['is not asked when the body is given up', (response) => response.body?.cancel(), 'body', 8],
    ['is not asked when the body fails', (response) => response.text().catch(() => {}), failing(), 8],
  ])('%s', async (_, use, body, remaining) => {
    expect(await remainingAfter(use, body)).toBe(remaining)
  })

  test('passes the body on byte by byte', async () => {
    const bytes = new Uint8Array(100_000).map((_, i) => i % 251)
    const response = await answering(() => new Response(bytes), { refundWhen: () => false })(ask())
    expect(new Uint8Array(await response.arrayBuffer())).toEqual(bytes)
  })
})
