import { Limiter } from '../limiter.js'
import { MemoryStore } from '../memory-store.js'
import { definePlans } from '../plans.js'
import type { Exchange } from './exchange.js'
import { HttpLimiter } from './http-limiter.js'
import type { RateLimitOptions } from './http-options.js'

type Headers = Record<string, string>

/** A request without a framework. */
function exchange(request: Headers = {}, response: Headers = {}, changes: Partial<Exchange> = {}): Exchange {
  return {
    request,
    response,
    identity: request,
    method: 'GET',
    ip: '203.0.113.5',
    trustsEveryProxy: false,
    trustsNoProxy: true,
    gone: false,
    headersSent: false,
    header: (name) => request[name],
    responseHeader: (name) => response[name.toLowerCase()],
    setResponseHeader: (name, value) => {
      response[name.toLowerCase()] = value
    },
    onEnd: () => {},
    ...changes,
  }
}

function limiter(options: Partial<RateLimitOptions<unknown>> = {}): HttpLimiter<unknown> {
  const store = new MemoryStore({ nowUs: () => 0 })
  // Tests hand a request to a limiter that they have just made, which is warned of.
  const logger = { warn: () => {} }
  const defaults = { store, logger, limit: 10, window: '1s', algorithm: 'fixed-window' } as const
  return new HttpLimiter<unknown>({ ...defaults, ...options })
}

describe('mistakes in the options are errors at once', () => {
  const plans = definePlans({ free: { limit: 1, window: '1m' } })
  const short = { limit: 1, window: '1m' }
  test.each<[string, object | undefined, string, string]>([
    ['no options', undefined, 'SLUICE_BAD_OPTION', 'options'],
    ['a misspelt option', { ...short, onLimit: () => {} }, 'SLUICE_UNKNOWN_OPTION', 'onLimit'],
    ['a key that is no function', { ...short, key: 'ip' }, 'SLUICE_BAD_OPTION', 'key'],
    ['a skip that is no function', { ...short, skip: true }, 'SLUICE_BAD_OPTION', 'skip'],
    ['an onLimited that is no function', { ...short, onLimited: 'no' }, 'SLUICE_BAD_OPTION', 'onLimited'],
    ['a negative cost', { ...short, cost: -1 }, 'SLUICE_BAD_OPTION', 'cost'],
    ['a cost as text', { ...short, cost: '1' }, 'SLUICE_BAD_OPTION', 'cost'],
    ['a limit as text', { ...short, limit: '1' }, 'SLUICE_BAD_OPTION', 'limit'],
    ['a limit function without a name', { ...short, limit: () => 1 }, 'SLUICE_BAD_OPTION', 'name'],
    ['a status that refuses nothing', { ...short, statusCode: 200 }, 'SLUICE_BAD_OPTION', 'statusCode'],
    ['a preflight of another kind', { ...short, preflight: true }, 'SLUICE_BAD_OPTION', 'preflight'],
    ['a header set of another kind', { ...short, headers: 'draft-9' }, 'SLUICE_BAD_OPTION', 'headers'],
    ['a reset of another kind', { ...short, legacyReset: 'ms' }, 'SLUICE_BAD_OPTION', 'legacyReset'],
    ['a jitter of part of a ms', { ...short, retryJitterMs: 0.5 }, 'SLUICE_BAD_OPTION', 'retryJitterMs'],
    ['a negative jitter', { ...short, retryJitterMs: -1 }, 'SLUICE_BAD_OPTION', 'retryJitterMs'],
    ['a jitter of years', { ...short, retryJitterMs: 1e12 }, 'SLUICE_BAD_OPTION', 'retryJitterMs'],
    ['a jitter as text', { ...short, retryJitterMs: '5' }, 'SLUICE_BAD_OPTION', 'retryJitterMs'],
    ['a message that is no body', { ...short, message: 7 }, 'SLUICE_BAD_OPTION', 'message'],
    ['a plan without plans', { ...short, plan: 'free' }, 'SLUICE_BAD_OPTION', 'plan'],
    ['a defaultPlan without plans', { ...short, defaultPlan: 'free' }, 'SLUICE_BAD_OPTION', 'defaultPlan'],
    ['plans without a plan', { plans }, 'SLUICE_BAD_OPTION', 'plan'],
    ['a plan that does not exist', { plans, plan: 'gold' }, 'SLUICE_BAD_OPTION', 'plan'],
    ['a defaultPlan that does not exist', { plans, defaultPlan: 'gold' }, 'SLUICE_BAD_OPTION', 'defaultPlan'],
    ['a limiter that is none', { limiter: {} }, 'SLUICE_BAD_OPTION', 'limiter'],
    [
      'a limiter and a number',
      { limiter: new Limiter({ limit: 1, window: '1m' }), limit: 1 },
      'SLUICE_BAD_OPTION',
      'limit',
    ],
    [
      'a limiter and its options',
      { limiter: new Limiter({ limit: 1, window: '1m' }), window: '1m' },
      'SLUICE_UNKNOWN_OPTION',
      'window',
    ],
  ])('%s', (_, options, code, option) => {
    expect(() => new HttpLimiter(options as RateLimitOptions<unknown>)).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(`\`${option}\``) }),
    )
  })

  test('a mistake leaves the name free', () => {
    const store = new MemoryStore()
    const options = { store, name: 'api', ...short }
    expect(() => new HttpLimiter({ ...options, statusCode: 7 })).toThrow()
    expect(() => new HttpLimiter(options)).not.toThrow()
  })
})

test.each([
  ['plain', () => 'k'],
  ['a promise', async () => 'k'],
  // biome-ignore lint/suspicious/noThenProperty: what database clients return
  ['any thenable', () => ({ then: (resolve: (key: string) => void) => resolve('k') }) as Promise<string>],
])('a function of the request may return a value that is %s', async (_, key) => {
  const { decision } = await limiter({ key }).handle(exchange())
  expect(decision.key).toBe('k')
})

test('an extractor learns the plan, the address and the headers of the request', async () => {
  const plans = definePlans({ free: { limit: 1, window: '1m' } })
  const key = jest.fn(() => 'k')
  const request = { 'x-a': '1' }
  await new HttpLimiter({ plans, plan: 'free', key }).handle(exchange(request))
  const [first, context] = key.mock.calls[0] as unknown as [unknown, { header(name: string): unknown }]
  expect(first).toBe(request)
  expect(context).toMatchObject({ plan: 'free', ip: '203.0.113.5' })
  expect(context.header('x-a')).toBe('1')
  const { header } = context
  expect(header('x-a')).toBe('1')
})

test('a thenable that never settles is given up after timeoutMs', async () => {
  // biome-ignore lint/suspicious/noThenProperty: what database clients return
  const key = () => ({ then: () => {} }) as unknown as Promise<string>
  await expect(limiter({ key, timeoutMs: 1 }).handle(exchange())).rejects.toMatchObject({
    code: 'SLUICE_REQUEST_FUNCTION',
  })
})

describe('members that others put into a list', () => {
  const first = limiter({ name: 'a', limit: 10, headers: 'draft-6' })
  const second = limiter({ name: 'b', limit: 20, headers: 'draft-6' })
  test.each<[string, Headers, (present: string) => string, string]>([
    ['none', {}, (present) => present, '10;w=1, 20;w=1'],
    ['before ours', { 'ratelimit-policy': '5;w=1' }, (present) => present, '5;w=1, 10;w=1, 20;w=1'],
    [
      'that end like ours',
      { 'ratelimit-policy': '110;w=1' },
      (present) => present,
      '110;w=1, 10;w=1, 20;w=1',
    ],
    [
      'that begin like ours',
      { 'ratelimit-policy': '10;w=10' },
      (present) => present,
      '10;w=10, 10;w=1, 20;w=1',
    ],
    ['after ours', {}, (present) => `${present}, 5;w=1`, '10;w=1, 20;w=1, 5;w=1'],
    ['in place of ours', {}, () => '110;w=1', '110;w=1, 10;w=1, 20;w=1'],
  ])('are kept: %s', async (_, response, between, expected) => {
    const request = {}
    await first.handle(exchange(request, response))
    response['ratelimit-policy'] = between(response['ratelimit-policy'] as string)
    await second.handle(exchange(request, response))
    expect(response['ratelimit-policy']).toBe(expected)
  })
})

describe('Access-Control-Expose-Headers', () => {
  const ours = 'RateLimit-Policy, RateLimit'
  test.each<[string, Headers, string | undefined]>([
    ['is left alone without CORS', {}, undefined],
    ['names our fields', { 'access-control-allow-origin': '*' }, ours],
    [
      'keeps those of others',
      { 'access-control-allow-origin': '*', 'access-control-expose-headers': 'ETag' },
      `ETag, ${ours}`,
    ],
    [
      'names none twice, in whatever case',
      { 'access-control-allow-origin': '*', 'access-control-expose-headers': 'ratelimit ,RATELIMIT-POLICY' },
      'ratelimit ,RATELIMIT-POLICY',
    ],
  ])('%s', async (_, response, expected) => {
    await limiter({ headers: 'draft-8' }).handle(exchange({}, response))
    expect(response['access-control-expose-headers']).toBe(expected)
  })
})

describe('several limiters on one request', () => {
  const policies = (limit: number, name: string) => [
    { name, limit, window: '1s', algorithm: 'fixed-window' as const },
  ]
  async function headersOf(...options: Partial<RateLimitOptions<unknown>>[]): Promise<Headers> {
    const request = {}
    const response: Headers = {}
    for (const own of options) {
      const store = new MemoryStore({ nowUs: () => 0 })
      await new HttpLimiter<unknown>({ store, ...own }).handle(exchange(request, response))
    }
    return response
  }

  test('of one name, each with a store of its own, have different names in one list', async () => {
    const same = { limit: 5, window: '1s', algorithm: 'fixed-window' } as const
    expect(await headersOf(same, same)).toMatchObject({
      'ratelimit-policy': '"default/5-per-1s";q=5;w=1, "default/5-per-1s/2";q=5;w=1',
      ratelimit: '"default/5-per-1s";r=4;t=1, "default/5-per-1s/2";r=4;t=1',
    })
  })

  test('leave out the one whose headers are false, before or after it', async () => {
    const silent = { policies: policies(1, 'silent'), headers: false } as const
    const app = { policies: policies(5, 'app') }
    const alone = await headersOf(app)
    expect(await headersOf(silent, app)).toEqual(alone)
    expect(await headersOf(app, silent)).toEqual(alone)
    expect(await headersOf(silent, { ...silent, headers: [] })).toEqual({})
  })

  test('send the sets of all of them, so that no field loses what it refers to', async () => {
    const app = policies(5, 'app')
    const route = policies(3, 'route')
    for (const [first, second, limit] of [
      ['draft-8', 'draft-6', '3'],
      ['draft-6', 'draft-8', '3'],
      ['draft-7', 'draft-8', undefined],
    ] as const) {
      const headers = await headersOf({ policies: app, headers: first }, { policies: route, headers: second })
      expect(headers).toMatchObject({
        'ratelimit-policy': '"app";q=5;w=1, "route";q=3;w=1',
        ratelimit: '"app";r=4;t=1, "route";r=2;t=1',
      })
      expect(headers['ratelimit-limit']).toBe(limit)
    }
  })
})

describe('retryJitterMs', () => {
  const nowUs = 1.8e15
  /** The second of two requests of one a second, and its headers. */
  async function deny(random: number, options: Partial<RateLimitOptions<unknown>> = {}) {
    const draw = jest.fn(() => random)
    const store = new MemoryStore({ nowUs: () => nowUs })
    const rule = { limit: 1, window: '1s', algorithm: 'fixed-window' } as const
    const sets = { headers: ['draft-8', 'draft-6', 'legacy'], retryJitterMs: 9000 } as const
    const limiter = new HttpLimiter<unknown>({ store, ...rule, ...sets, ...options }, draw)
    const allowed: Headers = {}
    await limiter.handle(exchange({}, allowed))
    expect(draw).not.toHaveBeenCalled()
    const denied: Headers = {}
    const { decision, refusal } = await limiter.handle(exchange({}, denied))
    return { allowed, denied, decision, refusal, draw }
  }

  test.each([
    [0, 1],
    [0.5, 6],
    [1 - 2 ** -53, 10],
  ])(
    'with %d drawn, one delay is added to every time that a denied client is told',
    async (random, seconds) => {
      const { denied, refusal, draw } = await deny(random)
      expect(denied).toMatchObject({
        'retry-after': String(seconds),
        ratelimit: `"1-per-1s";r=0;t=${seconds}`,
        'ratelimit-reset': String(seconds),
        'x-ratelimit-reset': String(1.8e9 + seconds),
      })
      expect(JSON.parse(refusal?.body ?? '').detail).toContain(`in ${seconds} second`)
      expect(draw).toHaveBeenCalledTimes(1)
    },
  )

  test('is whole milliseconds, from 0 up to the option', async () => {
    const longest = (retryJitterMs: number) => deny(1 - 2 ** -53, { retryJitterMs })
    expect((await longest(1000)).denied['retry-after']).toBe('2')
    expect((await longest(1001)).denied['retry-after']).toBe('3')
    expect((await deny(0.999, { retryJitterMs: 1 })).denied['retry-after']).toBe('2')
  })

  test('leaves the decision exact, and the allowed alone', async () => {
    const { allowed, decision } = await deny(0.5)
    expect(decision).toMatchObject({ retryAfterMs: 1000, policies: [{ retryAfterMs: 1000 }] })
    expect(allowed).toMatchObject({ ratelimit: '"1-per-1s";r=0;t=1', 'x-ratelimit-reset': '1800000001' })
  })

  test('draws nothing by default', async () => {
    const { denied, draw } = await deny(0.5, { retryJitterMs: 0 })
    expect(denied['retry-after']).toBe('1')
    expect(draw).not.toHaveBeenCalled()
  })
})

test('after headers went out none is set, and the request is decided all the same', async () => {
  const response: Headers = {}
  const outcome = await limiter({ limit: 0 }).handle(exchange({}, response, { headersSent: true }))
  expect(response).toEqual({})
  expect(outcome).toMatchObject({ decision: { allowed: false }, refusal: { status: 429 } })
})
