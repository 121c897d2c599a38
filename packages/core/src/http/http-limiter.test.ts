import { Limiter } from '../limiter.js'
import { MemoryStore } from '../memory-store.js'
import { definePlans } from '../plans.js'
import type { Exchange } from './exchange.js'
import { HttpLimiter, type RateLimitOptions } from './http-limiter.js'

type Headers = Record<string, string>

/** A request without a framework. */
function exchange(request: Headers = {}, response: Headers = {}, changes: Partial<Exchange> = {}): Exchange {
  return {
    request,
    identity: request,
    method: 'GET',
    ip: '203.0.113.5',
    trustsEveryProxy: false,
    headersSent: false,
    header: (name) => request[name],
    responseHeader: (name) => response[name.toLowerCase()],
    setResponseHeader: (name, value) => {
      response[name.toLowerCase()] = value
    },
    ...changes,
  }
}

function limiter(options: Partial<RateLimitOptions<unknown>> = {}): HttpLimiter<unknown> {
  const store = new MemoryStore({ nowUs: () => 0 })
  return new HttpLimiter<unknown>({ store, limit: 10, window: '1s', algorithm: 'fixed-window', ...options })
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
})

test('a thenable that never settles is given up after timeoutMs', async () => {
  // biome-ignore lint/suspicious/noThenProperty: what database clients return
  const key = () => ({ then: () => {} }) as unknown as Promise<string>
  await expect(limiter({ key, timeoutMs: 1 }).handle(exchange())).rejects.toMatchObject({
    code: 'SLUICE_REQUEST_FUNCTION',
  })
})

test('trust in every proxy is asked for once', async () => {
  const trusts = jest.fn(() => false)
  const limit = limiter()
  for (let i = 0; i < 2; i++) {
    await limit.handle(Object.defineProperty(exchange(), 'trustsEveryProxy', { get: trusts }))
  }
  expect(trusts).toHaveBeenCalledTimes(1)
})

test('trust in every proxy matters only where an address is used B01', async () => {
  const warn = jest.fn()
  const trusting = exchange({}, {}, { trustsEveryProxy: true })
  await limiter({ key: () => 'k', logger: { warn } }).handle(trusting)
  expect(warn).not.toHaveBeenCalled()
  await limiter({ logger: { warn } }).handle(trusting)
  expect(warn).toHaveBeenCalledTimes(1)
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

test('after headers went out none is set, and the request is decided all the same', async () => {
  const response: Headers = {}
  const outcome = await limiter({ limit: 0 }).handle(exchange({}, response, { headersSent: true }))
  expect(response).toEqual({})
  expect(outcome).toMatchObject({ decision: { allowed: false }, refusal: { status: 429 } })
})
