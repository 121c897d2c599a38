import { SluiceError } from '@sluice/core'
import { forwardedFor, type RateLimitOptions, withRateLimit } from './index.js'

const ok = (): Response => new Response('ok')
const limit: RateLimitOptions = { limit: 9, window: '1m', logger: { warn: () => {} } }
const ask = (headers: Record<string, string> = {}): Request => new Request('https://a.example/', { headers })

/** Who a request is counted as. */
async function keyOf(request: Request, rest: unknown[], options: RateLimitOptions = {}): Promise<string> {
  let key = ''
  const limited = withRateLimit(ok, {
    ...limit,
    ...options,
    onEvent: (event) => {
      if (event.type === 'decision') key = event.decision.key
    },
  })
  await limited(request, ...(rest as []))
  return key
}

/** What anyone can send. */
const forged = {
  'x-forwarded-for': '6.6.6.6',
  forwarded: 'for=6.6.6.6',
  'x-real-ip': '6.6.6.6',
  'cf-connecting-ip': '6.6.6.6',
  'true-client-ip': '6.6.6.6',
  'fly-client-ip': '6.6.6.6',
}

describe('the address of a client', () => {
  const runtimes: [runtime: string, rest: unknown[]][] = [
    ['Deno', [{ remoteAddr: { transport: 'tcp', hostname: '10.1.2.3', port: 4000 } }]],
    ['Bun', [{ requestIP: () => ({ address: '10.1.2.3', port: 4000, family: 'IPv4' }) }]],
    [
      'Node.js, with @hono/node-server',
      [{ incoming: { socket: { remoteAddress: '10.1.2.3' } }, outgoing: {} }],
    ],
    ['Node.js, with @whatwg-node/server', [{ req: { socket: { remoteAddress: '10.1.2.3' } }, res: {} }]],
  ]

  test.each(runtimes)('is what %s says, whatever headers say', async (_, rest) => {
    expect(await keyOf(ask(forged), rest)).toBe('ip:10.1.2.3')
  })

  const withoutAddress: [what: string, rest: unknown[], options: RateLimitOptions][] = [
    ['a runtime that says nothing', [], {}],
    ['a runtime whose handlers get something else', [{ DB: {} }, { waitUntil: () => {} }], {}],
    ['a unix socket of Deno', [{ remoteAddr: { transport: 'unix', path: '/tmp/s' } }], {}],
    ['a connection that Bun no longer knows', [{ requestIP: () => null }], {}],
    ['an `address` that finds none', [], { address: () => undefined }],
    ['an `address` that is empty', [], { address: () => '' }],
    ['an `address` that is no text', [], { address: (() => 42) as never }],
    ['a request that came around the proxy', [], { address: forwardedFor(2) }],
  ]

  test.each(withoutAddress)(
    'is none for %s: an error with a code, and nothing charged',
    async (_, rest, options) => {
      const limited = withRateLimit(ok, { ...limit, ...options })
      await expect(limited(ask(forged), ...(rest as []))).rejects.toMatchObject({ code: 'SLUICE_NO_ADDRESS' })
      expect(await limited.limiter.peek({ key: 'ip:', cost: 0 })).toMatchObject({ remaining: 9 })
    },
  )

  test('is not asked for where something else is counted', async () => {
    expect(
      await keyOf(ask({ 'x-id': 'a' }), [], { key: (request) => `${request.headers.get('x-id')}` }),
    ).toBe('a')
  })

  test('comes from an `address` that throws as an error with a code', async () => {
    const cause = new Error('no such thing')
    const address = (): never => {
      throw cause
    }
    const answer = withRateLimit(ok, { ...limit, address })(ask())
    await expect(answer).rejects.toMatchObject({ code: 'SLUICE_REQUEST_FUNCTION', cause })
  })

  describe('on Cloudflare', () => {
    const { navigator } = globalThis as { navigator?: unknown }
    beforeAll(() => {
      Object.defineProperty(globalThis, 'navigator', {
        configurable: true,
        value: { userAgent: 'Cloudflare-Workers' },
      })
    })
    afterAll(() => {
      Object.defineProperty(globalThis, 'navigator', { configurable: true, value: navigator })
    })

    test('is what its network says', async () => {
      const request = Object.assign(ask({ ...forged, 'cf-connecting-ip': '10.1.2.3' }), {
        cf: { colo: 'FRA' },
      })
      expect(await keyOf(request, [{ remoteAddr: { hostname: '6.6.6.6' } }])).toBe('ip:10.1.2.3')
    })

    test('is none in its runtime outside of its network, where clients can write the header', async () => {
      await expect(keyOf(ask(forged), [])).rejects.toMatchObject({ code: 'SLUICE_NO_ADDRESS' })
    })
  })

  test.each([
    ['one proxy', 1, '9.9.9.9'],
    ['two proxies', 2, '8.8.8.8'],
    ['three proxies, all of which the list shows', 3, '7.7.7.7'],
  ])('behind %s is what the outermost of them saw', async (_, proxies, address) => {
    const warn = jest.fn()
    const request = ask({ 'x-forwarded-for': '7.7.7.7, 8.8.8.8 ,9.9.9.9' })
    expect(await keyOf(request, [], { address: forwardedFor(proxies), logger: { warn } })).toBe(
      `ip:${address}`,
    )
    expect(warn).not.toHaveBeenCalled()
  })

  test.each([0, 1.5, 33, '1'])('behind %p proxies is refused', (proxies) => {
    expect(() => forwardedFor(proxies as number)).toThrow(SluiceError)
  })

  test('that a client can write is warned of', async () => {
    const warn = jest.fn()
    const address: RateLimitOptions['address'] = (request) =>
      request.headers.get('x-forwarded-for')?.split(',')[0]
    await keyOf(ask({ 'x-forwarded-for': '6.6.6.6, 9.9.9.9' }), [], { address, logger: { warn } })
    expect(warn).toHaveBeenCalledWith(expect.stringContaining('SLUICE_TRUSTS_EVERY_PROXY'))
  })

  test('of a proxy that is not trusted is warned of', async () => {
    const warn = jest.fn()
    await keyOf(ask({ 'x-forwarded-for': '6.6.6.6' }), [{ remoteAddr: { hostname: '10.0.0.1' } }], {
      logger: { warn },
    })
    expect(warn).toHaveBeenCalledWith(expect.stringContaining('SLUICE_UNTRUSTED_FORWARDED_HEADER'))
  })
})
