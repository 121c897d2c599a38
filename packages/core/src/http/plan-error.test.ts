import type { SluiceEvent } from '../events.js'
import { Limiter } from '../limiter.js'
import { MemoryStore } from '../memory-store.js'
import { definePlans } from '../plans.js'
import type { Exchange } from './exchange.js'
import { byPlan } from './extractors.js'
import { HttpLimiter, type HttpOutcome } from './http-limiter.js'
import type { RateLimitOptions } from './http-options.js'

interface Customer {
  readonly user: string
  /** What the lookup of the plan does. */
  readonly lookup: () => string | undefined | Promise<string | undefined>
}

const plans = definePlans({
  free: { limit: 2, window: '1h', algorithm: 'fixed-window' },
  pro: { limit: 10, window: '1h', algorithm: 'fixed-window' },
  enterprise: 'unlimited',
})

const found = (plan: string | undefined) => () => plan
const failures: [string, Customer['lookup']][] = [
  ['throws', () => raise(new Error('accounts are away'))],
  ['rejects', () => Promise.reject(new Error('accounts are away'))],
  ['never answers', () => new Promise(() => {})],
  ['answers too late', () => late('pro').promise],
]
const rejects = failures[1]?.[1] as Customer['lookup']

function raise(error: Error): never {
  throw error
}

/** An answer that comes when the test says so, or never. */
function late(plan: string) {
  let answer = (): void => {}
  const promise = new Promise<string>((resolve) => {
    answer = () => resolve(plan)
  })
  return { promise, answer }
}

function setUp(options: Partial<RateLimitOptions<Customer>> = {}) {
  const events: SluiceEvent[] = []
  const lines: string[] = []
  const http = new HttpLimiter<Customer>({
    name: 'api',
    store: new MemoryStore({ nowUs: () => 0 }),
    timeoutMs: 1,
    plans,
    plan: ({ lookup }) => lookup(),
    key: ({ user }) => `user:${user}`,
    onEvent: (event) => events.push(event),
    logger: { warn: (line) => lines.push(line) },
    ...options,
  })
  // Tests hand a request to a limiter that they have just made, which is warned of.
  const logged = () => lines.filter((line) => !line.includes('SLUICE_MADE_IN_HANDLER'))
  const send = (user: string, lookup: Customer['lookup']): Promise<HttpOutcome> =>
    http.handle(exchange({ user, lookup }))
  const planErrors = () => events.filter(({ type }) => type === 'plan-error')
  return { http, send, planErrors, logged }
}

/** A request without a framework. */
function exchange(request: Customer): Exchange<Customer> {
  return {
    request,
    response: {},
    identity: request,
    method: 'GET',
    ip: '203.0.113.5',
    trustsEveryProxy: false,
    trustsNoProxy: true,
    gone: false,
    headersSent: false,
    header: () => undefined,
    responseHeader: () => undefined,
    setResponseHeader: () => {},
    onEnd: () => {},
  }
}

async function times(count: number, request: () => Promise<HttpOutcome>): Promise<HttpOutcome[]> {
  const outcomes: HttpOutcome[] = []
  for (let i = 0; i < count; i += 1) outcomes.push(await request())
  return outcomes
}

describe.each(failures)('a lookup of the plan that %s', (_, fails) => {
  it('is an error by default, with and without a defaultPlan, and charges nothing', async () => {
    for (const defaultPlan of [undefined, 'free']) {
      const { http, send } = setUp({ defaultPlan })
      await expect(send('ann', fails)).rejects.toMatchObject({ code: 'SLUICE_REQUEST_FUNCTION' })
      expect(await http.limiter.peek({ key: 'user:ann', plan: 'pro', cost: 0 })).toMatchObject({
        remaining: 10,
      })
    }
  })

  it('leaves a paying customer at half of the quota on the plan that was last known B127', async () => {
    const { send } = setUp({ onPlanError: 'last-known', defaultPlan: 'free' })
    await times(5, () => send('ann', found('pro')))
    const outcomes = await times(6, () => send('ann', fails))
    expect(outcomes.map(({ decision }) => [decision.plan, decision.allowed, decision.remaining])).toEqual([
      ...[4, 3, 2, 1, 0].map((remaining) => ['pro', true, remaining]),
      ['pro', false, 0],
    ])
  })

  it('is told as an event for each request, and as one line in all', async () => {
    const { send, planErrors, logged } = setUp({ onPlanError: { plan: 'free' } })
    await times(3, () => send('ann', fails))
    const event = {
      type: 'plan-error',
      limiter: 'api',
      key: 'user:ann',
      plan: 'free',
      error: expect.objectContaining({ code: 'SLUICE_REQUEST_FUNCTION' }),
    }
    expect(planErrors()).toEqual([event, event, event])
    expect(logged()).toEqual([
      expect.stringMatching(/^sluice: Option `plan` of limiter "api" .*`onPlanError`/),
    ])
  })
})

describe("onPlanError: 'last-known'", () => {
  it('gives a key that was not seen yet the defaultPlan', async () => {
    const { send, planErrors } = setUp({ onPlanError: 'last-known', defaultPlan: 'free' })
    await send('ann', found('pro'))
    expect((await send('bob', rejects)).decision).toMatchObject({
      plan: 'free',
      key: 'user:bob',
      remaining: 1,
    })
    expect(planErrors()).toMatchObject([{ key: 'user:bob', plan: 'free' }])
  })

  it('throws for such a key where there is no defaultPlan, and tells of it by the error alone', async () => {
    const { send, planErrors } = setUp({ onPlanError: 'last-known' })
    await expect(send('bob', rejects)).rejects.toMatchObject({ code: 'SLUICE_REQUEST_FUNCTION' })
    expect(planErrors()).toEqual([])
  })

  it.each([
    ['another plan', 'enterprise', 'enterprise'],
    ['the default plan', 'free', 'free'],
    ['no plan of its own any more', undefined, 'free'],
  ])('follows a key to %s', async (_, next, expected) => {
    const { send } = setUp({ onPlanError: 'last-known', defaultPlan: 'free' })
    await send('ann', found('pro'))
    await send('ann', found(next))
    expect((await send('ann', rejects)).decision.plan).toBe(expected)
  })

  it('learns from an answer that comes too late', async () => {
    const { send } = setUp({ onPlanError: 'last-known', defaultPlan: 'free' })
    const slow = late('pro')
    expect((await send('ann', () => slow.promise)).decision.plan).toBe('free')
    slow.answer()
    await slow.promise
    expect((await send('ann', rejects)).decision.plan).toBe('pro')
  })

  it('does not keep a plan that does not exist', async () => {
    const { send } = setUp({ onPlanError: 'last-known' })
    await expect(send('ann', found('gold'))).rejects.toMatchObject({ code: 'SLUICE_UNKNOWN_PLAN' })
    await expect(send('ann', rejects)).rejects.toMatchObject({ code: 'SLUICE_REQUEST_FUNCTION' })
  })

  it('keeps the 10,000 keys that were seen last, among which those of the default plan do not count', async () => {
    const { send } = setUp({ onPlanError: 'last-known', defaultPlan: 'free' })
    const planOf = async (user: string) => (await send(user, rejects)).decision.plan
    await send('first', found('pro'))
    await send('second', found('pro'))
    for (let i = 0; i < 9998; i += 1) await send(`${i}`, found('pro'))
    for (let i = 0; i < 10; i += 1) await send(`new-${i}`, found('free'))
    await send('first', found('pro'))
    expect([await planOf('first'), await planOf('second')]).toEqual(['pro', 'pro'])
    await send('one more', found('pro'))
    expect([await planOf('first'), await planOf('second')]).toEqual(['pro', 'free'])
  })

  it('does not know a key that depends on the plan, which is another one without it', async () => {
    const key: RateLimitOptions<Customer>['key'] = ({ user }, { plan }) =>
      plan === 'pro' ? `user:${user}` : 'visitors'
    const { send } = setUp({ onPlanError: 'last-known', defaultPlan: 'free', key })
    await send('ann', found('pro'))
    await send('bob', found('enterprise'))
    expect((await send('ann', rejects)).decision).toMatchObject({ plan: 'free', key: 'visitors' })
  })
})

test('onPlanError: { plan } stands in for a lookup that failed, not for a plan that is unknown', async () => {
  const { send } = setUp({ onPlanError: { plan: 'pro' }, defaultPlan: 'free' })
  const plan = async (lookup: Customer['lookup']) => (await send('ann', lookup)).decision.plan
  expect([await plan(rejects), await plan(found('gold')), await plan(found(undefined))]).toEqual([
    'pro',
    'free',
    'free',
  ])
})

test.each<[string, RateLimitOptions<Customer>['onPlanError'], string]>([
  ['the default plan', 'last-known', 'plan:free'],
  ['the default plan', 'store-error', 'plan:free'],
  ['the plan that is named', { plan: 'pro' }, 'plan:pro'],
])('a key by plan is that of %s after a failed lookup with %j', async (_, onPlanError, key) => {
  const { send } = setUp({ onPlanError, defaultPlan: 'free', key: byPlan() })
  await send('ann', found('enterprise'))
  expect((await send('ann', rejects)).decision.key).toBe(key)
})

describe("onPlanError: 'store-error'", () => {
  const uncounted = { reason: 'store-error', source: 'none', degraded: true, policies: [] }
  it.each<[string, Partial<RateLimitOptions<Customer>>, object, number | undefined]>([
    ['allows by default', {}, { ...uncounted, allowed: true }, undefined],
    ['denies with deny', { onStoreError: 'deny' }, { ...uncounted, allowed: false }, 503],
    ['denies by a function', { onStoreError: () => 'deny' }, { ...uncounted, allowed: false }, 503],
    [
      'allows with local and no defaultPlan',
      { onStoreError: 'local' },
      { ...uncounted, allowed: true },
      undefined,
    ],
    [
      'counts the defaultPlan in memory with local',
      { onStoreError: 'local', nodes: 1, defaultPlan: 'free' },
      { source: 'local', degraded: true, plan: 'free', remaining: 1, allowed: true },
      undefined,
    ],
  ])('%s', async (_, options, decision, status) => {
    const { http, send } = setUp({ onPlanError: 'store-error', ...options })
    const outcome = await send('ann', rejects)
    expect(outcome.decision).toMatchObject({ key: 'user:ann', ...decision })
    expect(outcome.refusal?.status).toBe(status)
    for (const plan of ['free', 'pro']) {
      const { limit, remaining } = await http.limiter.peek({ key: 'user:ann', plan, cost: 0 })
      expect(remaining).toBe(limit)
    }
  })

  it('denies beyond the defaultPlan with local', async () => {
    const options = { onStoreError: 'local', nodes: 1, defaultPlan: 'free' } as const
    const { send } = setUp({ onPlanError: 'store-error', ...options })
    const outcomes = await times(3, () => send('ann', rejects))
    expect(outcomes.map(({ refusal }) => refusal?.status)).toEqual([undefined, undefined, 429])
  })

  it('gives the function onStoreError the error of the lookup', async () => {
    const onStoreError = jest.fn(() => 'allow' as const)
    await setUp({ onPlanError: 'store-error', onStoreError }).send('ann', rejects)
    expect(onStoreError).toHaveBeenCalledWith(
      expect.objectContaining({ code: 'SLUICE_REQUEST_FUNCTION', cause: new Error('accounts are away') }),
    )
  })

  it('still refuses a key that is blocked', async () => {
    const { http, send } = setUp({ onPlanError: 'store-error', blocks: true })
    expect((await send('ann', rejects)).decision).toMatchObject({ allowed: true, reason: 'store-error' })
    await http.limiter.block('user:ann', '1m')
    expect((await send('ann', rejects)).decision).toMatchObject({ allowed: false, reason: 'blocked' })
  })
})

const lookup = () => 'free'
test.each<[string, object, string]>([
  ['without a function plan', { plans, plan: 'free', onPlanError: 'last-known' }, 'onPlanError'],
  ['without plans', { limit: 1, window: '1m', onPlanError: 'throw' }, 'onPlanError'],
  ['of another kind', { plans, plan: lookup, onPlanError: 'allow' }, 'onPlanError'],
  ['null', { plans, plan: lookup, onPlanError: null }, 'onPlanError'],
  [
    'with a plan that does not exist',
    { plans, plan: lookup, onPlanError: { plan: 'gold' } },
    'onPlanError.plan',
  ],
  ['with no plan', { plans, plan: lookup, onPlanError: {} }, 'onPlanError.plan'],
])('onPlanError %s is an error at once', (_, options, option) => {
  expect(() => new HttpLimiter(options as RateLimitOptions<unknown>)).toThrow(
    expect.objectContaining({
      code: 'SLUICE_BAD_OPTION',
      message: expect.stringContaining(`\`${option}\``),
    }),
  )
})

test('onPlanError goes with a limiter made elsewhere', async () => {
  const limiter = new Limiter({ plans, logger: { warn: () => {} } })
  const options = { onPlanError: { plan: 'free' }, plan: rejects, key: () => 'k' } as const
  const { decision } = await new HttpLimiter<Customer>({ limiter, ...options }).handle(
    exchange({ user: 'ann', lookup: rejects }),
  )
  expect(decision.plan).toBe('free')
})
