import { errorOf } from '../test/error-of.js'
import { manualClock } from '../test/manual-clock.js'
import type { Algorithm } from './algorithms/index.js'
import type { SluiceEvent } from './events.js'
import type { LimitRequest } from './limit-request.js'
import { Limiter } from './limiter.js'
import type { LimiterOptions } from './limiter-options.js'
import { MemoryStore } from './memory-store.js'
import { definePlans } from './plans.js'
import type { Policy } from './policy.js'
import type { Check, ConsumeOptions, Refund, Store, Verdict } from './store.js'

const algorithms: Algorithm[] = ['fixed-window', 'sliding-window-counter', 'token-bucket', 'gcra']
const short = { limit: 3, window: '1m' } as const

/** A store that counts in memory by a clock of the test, and remembers what it was asked. */
class WatchedStore implements Store {
  readonly shared = true
  readonly clock = manualClock()
  readonly calls: { method: string; checks: readonly Check[]; options: ConsumeOptions }[] = []
  readonly memory = new MemoryStore({ nowUs: this.clock.nowUs })
  closed = 0

  consume(checks: readonly Check[], options: ConsumeOptions): Promise<readonly Verdict[]> {
    this.calls.push({ method: 'consume', checks, options })
    return this.memory.consume(checks, options)
  }

  peek(checks: readonly Check[], options: ConsumeOptions): Promise<readonly Verdict[]> {
    this.calls.push({ method: 'peek', checks, options })
    return this.memory.peek(checks)
  }

  refund(refunds: readonly Refund[]): Promise<void> {
    return this.memory.refund(refunds)
  }

  reset(keys: readonly string[]): Promise<void> {
    return this.memory.reset(keys)
  }

  async close(): Promise<void> {
    this.closed++
  }

  get keys(): string[] {
    return this.calls.flatMap(({ checks }) => checks.map(({ key }) => key))
  }
}

/** How many of `requests` are allowed, one after another. */
async function admitted(limiter: Limiter, requests: LimitRequest[]): Promise<number> {
  let count = 0
  for (const request of requests) if ((await limiter.consume(request)).allowed) count++
  return count
}

const times = (n: number, request: LimitRequest): LimitRequest[] => new Array(n).fill(request)

describe('the options of a limiter', () => {
  it.each<[unknown, string, string[]]>([
    [undefined, 'SLUICE_BAD_OPTION', ['`options`', 'undefined', '{ limit: 100, window: "1m" }']],
    [null, 'SLUICE_BAD_OPTION', ['`options`', 'null', '{ limit: 100, window: "1m" }']],
    [100, 'SLUICE_BAD_OPTION', ['`options`', '100', '{ limit: 100, window: "1m" }']],
    [{}, 'SLUICE_BAD_OPTION', ['`limit`', 'undefined', '`limit` and `window`, `policies`, or `plans`']],
    [{ name: 'login' }, 'SLUICE_BAD_OPTION', ['`limit`', 'undefined', '`limit` and `window`']],
    [{ limit: undefined }, 'SLUICE_BAD_OPTION', ['`limit`', 'undefined', '`limit` and `window`']],
    [{ window: '1m' }, 'SLUICE_BAD_OPTION', ['`limit`', 'undefined', 'whole number']],
    [{ limit: undefined, window: '1m' }, 'SLUICE_BAD_OPTION', ['`limit`', 'undefined', 'whole number']],
    [{ limit: Number.NaN, window: '1m' }, 'SLUICE_BAD_OPTION', ['`limit`', 'NaN', 'whole number']],
    [{ limit: '10', window: '1m' }, 'SLUICE_BAD_OPTION', ['`limit`', '"10"', 'whole number']],
    [{ limit: 10n, window: '1m' }, 'SLUICE_BAD_OPTION', ['`limit`', '10n', 'whole number']],
    [{ limit: 10 }, 'SLUICE_BAD_DURATION', ['`window`', 'undefined', "'15m'"]],
    [{ ...short, policies: [short] }, 'SLUICE_BAD_OPTION', ['`limit`, `policies`', 'one of']],
    [{ policies: [short], plans: { a: short } }, 'SLUICE_BAD_OPTION', ['`policies`, `plans`', 'one of']],
    [{ burst: 1, plans: { a: short } }, 'SLUICE_BAD_OPTION', ['`burst`, `plans`', 'one of']],
    [{ ...short, policies: null }, 'SLUICE_BAD_OPTION', ['`limit`, `policies`', 'one of']],
    [{ policies: null }, 'SLUICE_BAD_OPTION', ['`policies`', 'null', 'an array of at least one policy']],
    [{ policies: [] }, 'SLUICE_BAD_OPTION', ['`policies`', 'an array of 0', 'at least one policy']],
    [{ policies: short }, 'SLUICE_BAD_OPTION', ['`policies`', 'an object', 'an array']],
    [{ policies: [undefined] }, 'SLUICE_BAD_OPTION', ['`policy`', 'undefined', 'an object']],
    [{ policies: [short, short] }, 'SLUICE_DUPLICATE_POLICY', ['"3-per-1m"', '`name`']],
    [{ plans: null }, 'SLUICE_BAD_OPTION', ['`plans`', 'null', 'at least one plan']],
    [{ plans: {} }, 'SLUICE_BAD_OPTION', ['`plans`', 'an object ()', 'at least one plan']],
    [{ ...short, limt: 1 }, 'SLUICE_UNKNOWN_OPTION', ['`limt`', 'Known options: name, store']],
    [{ ...short, timeoutMs: 0 }, 'SLUICE_BAD_OPTION', ['`timeoutMs`', '0', '1 to 60,000']],
    [{ ...short, timeoutMs: 1.5 }, 'SLUICE_BAD_OPTION', ['`timeoutMs`', '1.5', '1 to 60,000']],
    [{ ...short, timeoutMs: 60_001 }, 'SLUICE_BAD_OPTION', ['`timeoutMs`', '60001', '1 to 60,000']],
    [
      { ...short, timeoutMs: Number.POSITIVE_INFINITY },
      'SLUICE_BAD_OPTION',
      ['`timeoutMs`', 'Infinity', '1 to 60,000'],
    ],
    [{ ...short, timeoutMs: Number.NaN }, 'SLUICE_BAD_OPTION', ['`timeoutMs`', 'NaN', '1 to 60,000']],
    [{ ...short, timeoutMs: '100' }, 'SLUICE_BAD_OPTION', ['`timeoutMs`', '"100"', '1 to 60,000']],
    [{ ...short, timeoutMs: 100n }, 'SLUICE_BAD_OPTION', ['`timeoutMs`', '100n', '1 to 60,000']],
    [
      { ...short, onStoreError: 'ignore' },
      'SLUICE_BAD_OPTION',
      ['`onStoreError`', '"ignore"', "'allow', 'deny', 'local'"],
    ],
    [{ ...short, onStoreError: null }, 'SLUICE_BAD_OPTION', ['`onStoreError`', 'null', "'allow', 'deny'"]],
    [
      { policies: [{ ...short, onStoreError: 'open' }] },
      'SLUICE_BAD_OPTION',
      ['`onStoreError`', '"open"', "'allow', 'deny', 'local'"],
    ],
    [{ ...short, nodes: 0 }, 'SLUICE_BAD_OPTION', ['`nodes`', '0', '1 to 100,000']],
    [{ ...short, nodes: 2.5 }, 'SLUICE_BAD_OPTION', ['`nodes`', '2.5', '1 to 100,000']],
    [{ ...short, nodes: '4' }, 'SLUICE_BAD_OPTION', ['`nodes`', '"4"', '1 to 100,000']],
    [{ ...short, onEvent: 'log' }, 'SLUICE_BAD_OPTION', ['`onEvent`', '"log"', 'a function']],
    [{ ...short, onEvent: null }, 'SLUICE_BAD_OPTION', ['`onEvent`', 'null', 'a function']],
    [{ ...short, logger: null }, 'SLUICE_BAD_OPTION', ['`logger`', 'null', '`warn`']],
    [{ ...short, logger: {} }, 'SLUICE_BAD_OPTION', ['`logger`', 'an object ()', '`warn`']],
    [{ ...short, store: null }, 'SLUICE_BAD_OPTION', ['`store`', 'null', 'new MemoryStore()']],
    [{ ...short, store: 'memory' }, 'SLUICE_BAD_OPTION', ['`store`', '"memory"', 'new MemoryStore()']],
    [{ ...short, store: new Map() }, 'SLUICE_BAD_OPTION', ['`store`', 'an object', 'new MemoryStore()']],
    [
      { ...short, store: Object.assign(new MemoryStore(), { shared: undefined }) },
      'SLUICE_BAD_OPTION',
      ['`store`', 'an object', 'new MemoryStore()'],
    ],
    [{ ...short, name: '' }, 'SLUICE_BAD_OPTION', ['`name`', '""', '1 to 64 printable ASCII']],
    [{ ...short, name: null }, 'SLUICE_BAD_OPTION', ['`name`', 'null', '1 to 64 printable ASCII']],
  ])('are refused: %p (B146)', async (options, code, parts) => {
    const error = await errorOf(() => new Limiter(options as LimiterOptions & Policy))
    expect(error.code).toBe(code)
    for (const part of parts) expect(error.message).toContain(part)
  })

  it('may be undefined, which is as if they were left out', async () => {
    const plans = { free: { ...short, burst: undefined } }
    const { burst, ...free } = plans.free
    const limiter = new Limiter({
      plans: { free },
      policies: undefined,
      limit: undefined,
      timeoutMs: undefined,
    })
    expect(burst).toBeUndefined()
    expect(limiter).toMatchObject({ name: 'default', timeoutMs: 100, hasPlans: true })
    await limiter.close()
  })

  it('name the limiter, and in the short form its policy', async () => {
    const store = new WatchedStore()
    const limiter = new Limiter({ name: 'login', store, ...short })
    const { policies } = await limiter.consume({ key: 'k' })
    expect(limiter.name).toBe('login')
    expect(policies.map((policy) => policy.name)).toEqual(['login'])
    expect(store.keys).toEqual(['1:{k}:login:login:sc60000'])
  })
})

describe('a name on a store', () => {
  it('belongs to one limiter, and is free again when that is closed (B113)', async () => {
    const store = new MemoryStore()
    const first = new Limiter({ store, ...short })
    const error = await errorOf(() => new Limiter({ store, ...short }))
    expect(error.code).toBe('SLUICE_DUPLICATE_NAME')
    for (const part of ['`name`', '"default"', 'same `policies` array']) expect(error.message).toContain(part)
    await first.close()
    expect(() => new Limiter({ store, ...short })).not.toThrow()
  })

  it('is not taken by a limiter whose options are refused', () => {
    const store = new MemoryStore()
    expect(() => new Limiter({ store, limit: -1, window: '1m' })).toThrow()
    expect(() => new Limiter({ store, ...short })).not.toThrow()
  })

  it('means another limiter on another store', () => {
    expect(() => [new Limiter(short), new Limiter(short)]).not.toThrow()
  })

  it.each<[string, () => LimiterOptions]>([
    [
      'policies array',
      () => {
        const policies = [short]
        return { policies }
      },
    ],
    ['definePlans value', () => ({ plans: definePlans({ free: short }) })],
  ])('is shared by limiters of the same %s, which count together', async (_, make) => {
    const options = { ...make(), store: new MemoryStore() }
    const request = { key: 'k', ...(options.plans && { plan: 'free' }) }
    const [first, second] = [new Limiter(options), new Limiter(options)]
    expect(await admitted(first, times(2, request))).toBe(2)
    expect(await admitted(second, times(2, request))).toBe(1)
    expect(() => new Limiter({ ...make(), store: options.store })).toThrow('SLUICE_DUPLICATE_NAME')
    await first.close()
    expect(() => new Limiter({ ...make(), store: options.store })).toThrow('SLUICE_DUPLICATE_NAME')
    await second.close()
    expect(() => new Limiter({ ...make(), store: options.store })).not.toThrow()
  })

  it('keeps the counts of two limiters apart (B113)', async () => {
    const store = new WatchedStore()
    const wide = new Limiter({ name: 'wide', store, limit: 100, window: '30s' })
    const narrow = new Limiter({ name: 'narrow', store, limit: 1, window: '1s' })
    expect((await wide.consume({ key: 'k' })).remaining).toBe(99)
    expect((await narrow.consume({ key: 'k' })).remaining).toBe(0)
    expect((await wide.consume({ key: 'k' })).remaining).toBe(98)
    expect((await narrow.consume({ key: 'k' })).allowed).toBe(false)
  })
})

describe('a request that cannot be used', () => {
  const plans = definePlans({ free: short, pro: { limit: 9, window: '1m' } })
  type Refused = [string, LimiterOptions & Partial<Policy>, unknown, string, string[]]
  const range = '0 to 1,000,000,000'
  const badKeys = [undefined, null, 42, 7n, {}, ['k'], Symbol('k')]
  const badCosts = [
    null,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    -1,
    0.5,
    1.5,
    1e9 + 1,
    2 ** 53 + 1,
    '1',
    1n,
    true,
  ]
  const badLimits = [null, Number.NaN, Number.POSITIVE_INFINITY, -1, 2.5, 1e9 + 1, '10', 10n]
  const badPlans = [undefined, null, 'gold', 'Free', '', '__proto__', 'constructor', 1]
  const refusals: Refused[] = [
    ...badKeys.map(
      (key): Refused => ['key', short, { key }, 'SLUICE_BAD_KEY', ['key is', 'Expected a string']],
    ),
    ...badCosts.map(
      (cost): Refused => ['cost', short, { key: 'k', cost }, 'SLUICE_BAD_COST', ['cost is', range]],
    ),
    ...badLimits.map(
      (limit): Refused => [
        'limit',
        { name: 'l', ...short },
        { key: 'k', limit },
        'SLUICE_BAD_LIMIT',
        ['limit is', range],
      ],
    ),
    ...badPlans.map(
      (plan): Refused => [
        'plan',
        { plans },
        { key: 'k', plan },
        'SLUICE_UNKNOWN_PLAN',
        ['"default"', 'free, pro'],
      ],
    ),
    ['plan', short, { key: 'k', plan: 'free' }, 'SLUICE_UNKNOWN_PLAN', ['"default"', '"free"']],
    ['limit', short, { key: 'k', limit: 5 }, 'SLUICE_BAD_LIMIT', ['`name`', '{ name, limit, window }']],
    ['limit', { policies: [short] }, { key: 'k', limit: 5 }, 'SLUICE_BAD_LIMIT', ['`name`']],
    ['limit', { plans }, { key: 'k', plan: 'free', limit: 5 }, 'SLUICE_BAD_LIMIT', ['`name`']],
  ]

  it.each(refusals)(
    'for its %s is refused before the store is asked: %p %p (B84, B146, B152)',
    async (_, options, request, code, parts) => {
      const store = new WatchedStore()
      const limiter = new Limiter({ ...options, store })
      for (const method of ['consume', 'peek'] as const) {
        const error = await errorOf(() => limiter[method](request as LimitRequest))
        expect(error.code).toBe(code)
        for (const part of parts) expect(error.message).toContain(part)
      }
      expect(store.calls).toEqual([])
    },
  )

  it('is a rejection, never a throw', () => {
    const result = new Limiter(short).consume({ key: undefined as unknown as string })
    return expect(result).rejects.toMatchObject({ code: 'SLUICE_BAD_KEY' })
  })
})

describe.each(algorithms)('a limiter by %s', (algorithm) => {
  it('admits exactly its limit of concurrent requests (B62)', async () => {
    const limiter = new Limiter({ store: new WatchedStore(), algorithm, limit: 5, window: '1m' })
    const decisions = await Promise.all(times(1000, { key: 'k' }).map((request) => limiter.consume(request)))
    expect(decisions.filter((decision) => decision.allowed)).toHaveLength(5)
  })

  it('refuses everything at limit 0, by options, plan and request (B148)', async () => {
    const zero = { algorithm, limit: 0, window: '1m' } as const
    const decisions = [
      await new Limiter(zero).consume({ key: 'k' }),
      await new Limiter({ plans: { none: zero } }).consume({ key: 'k', plan: 'none' }),
      await new Limiter({ ...zero, name: 'l', limit: 5 }).consume({ key: 'k', limit: 0 }),
    ]
    for (const decision of decisions) {
      expect(decision).toMatchObject({ allowed: false, reason: 'cost', limit: 0, remaining: 0 })
      expect(decision.retryAfterMs).toBe(Number.POSITIVE_INFINITY)
    }
  })

  it('refuses for ever a cost above the limit, and charges nothing', async () => {
    const limiter = new Limiter({ store: new WatchedStore(), algorithm, limit: 5, window: '1m' })
    const decision = await limiter.consume({ key: 'k', cost: 6 })
    expect(decision).toMatchObject({
      allowed: false,
      reason: 'cost',
      remaining: 5,
      retryAfterMs: Number.POSITIVE_INFINITY,
    })
    expect(await admitted(limiter, times(6, { key: 'k' }))).toBe(5)
  })

  it('charges nothing for cost 0', async () => {
    const limiter = new Limiter({ store: new WatchedStore(), algorithm, limit: 5, window: '1m' })
    expect(await limiter.consume({ key: 'k', cost: 0 })).toMatchObject({ allowed: true, remaining: 5 })
    expect(await limiter.consume({ key: 'k', cost: 5 })).toMatchObject({ allowed: true, remaining: 0 })
  })

  it('follows a changed limit from the next request, units used kept (B154)', async () => {
    const limiter = new Limiter({ name: 'l', store: new WatchedStore(), algorithm, limit: 100, window: '1h' })
    const remaining = async (request: Partial<LimitRequest>) =>
      (await limiter.consume({ key: 'k', ...request })).remaining
    expect(await remaining({ cost: 30 })).toBe(70)
    const lowered = await limiter.consume({ key: 'k', limit: 10 })
    expect(lowered.limit).toBe(10)
    const raised = await limiter.consume({ key: 'k', limit: 150 })
    expect(raised).toMatchObject({ allowed: true, limit: 150 })
    expect(raised.remaining).toBeLessThan(150)
    expect(await remaining({})).toBeLessThan(100)
  })

  it('admits no more than the larger of two alternating limits (B156)', async () => {
    const limiter = new Limiter({ name: 'l', store: new WatchedStore(), algorithm, limit: 11, window: '1h' })
    const requests = Array.from({ length: 40 }, (_, i) => ({ key: 'k', limit: 10 + (i % 2) }))
    expect(await admitted(limiter, requests)).toBeLessThanOrEqual(11)
  })

  it('peeks what consume would answer, and charges nothing', async () => {
    const store = new WatchedStore()
    const limiter = new Limiter({ store, algorithm, limit: 3, window: '1m' })
    for (const cost of [1, 0, 3, 2, 1, 4]) {
      const request = { key: 'k', cost }
      const peeked = await limiter.peek(request)
      expect(await limiter.peek(request)).toEqual(peeked)
      expect(await limiter.consume(request)).toEqual(peeked)
      store.clock.advance(7000)
    }
  })

  it('keeps windows and waits longer than a timer can be (B150)', async () => {
    for (const [name, days] of [
      ['month', 30],
      ['most', 400],
    ] as const) {
      const store = new WatchedStore()
      const limiter = new Limiter({ name, store, algorithm, limit: 1, window: `${days}d` })
      await limiter.consume({ key: 'k' })
      store.clock.advance(1000)
      expect(await limiter.consume({ key: 'k' })).toMatchObject({ allowed: false, reason: 'quota' })
    }
  })
})

describe('several policies', () => {
  const both: Policy[] = [
    { name: 'hour', algorithm: 'fixed-window', limit: 100, window: '1h' },
    { name: 'minute', algorithm: 'fixed-window', limit: 2, window: '1m' },
  ]

  it('charge all or nothing (B87)', async () => {
    const limiter = new Limiter({ store: new WatchedStore(), policies: both })
    expect(await admitted(limiter, times(10, { key: 'k' }))).toBe(2)
    const decision = await limiter.peek({ key: 'k' })
    expect(decision.policies).toMatchObject([
      { name: 'hour', allowed: true, remaining: 98, retryAfterMs: 0 },
      { name: 'minute', allowed: false, remaining: 0, retryAfterMs: 60_000 },
    ])
    expect(decision).toMatchObject({ allowed: false, reason: 'quota', limit: 2, retryAfterMs: 60_000 })
  })

  it('are asked of the store in one call, all keys in one hash tag', async () => {
    const store = new WatchedStore()
    await new Limiter({ store, policies: both, timeoutMs: 250 }).consume({ key: 'k' })
    expect(store.calls).toHaveLength(1)
    expect(store.calls[0]?.options.timeoutMs).toBe(250)
    expect(store.keys).toEqual(['1:{k}:default:hour:fw3600000', '1:{k}:default:minute:fw60000'])
  })

  it('that only shadow report their denial and never refuse', async () => {
    const policies = both.map((policy) => ({ ...policy, shadow: policy.name === 'minute' }))
    const limiter = new Limiter({ store: new WatchedStore(), policies })
    expect(await admitted(limiter, times(10, { key: 'k' }))).toBe(10)
    const decision = await limiter.consume({ key: 'k' })
    expect(decision).toMatchObject({ allowed: true, reason: 'ok', limit: 100, remaining: 89 })
    expect(decision.policies[1]).toMatchObject({
      shadow: true,
      allowed: false,
      remaining: 0,
      retryAfterMs: 60_000,
    })
  })
})

describe('plans', () => {
  const counted = { algorithm: 'fixed-window', window: '1h' } as const

  it('that share place, algorithm and window share the count of a key that changes plan (B156)', async () => {
    const plans = definePlans({ a: { ...counted, limit: 10 }, b: { ...counted, limit: 11 } })
    const limiter = new Limiter({ store: new WatchedStore(), plans })
    const requests = Array.from({ length: 40 }, (_, i) => ({ key: 'k', plan: i % 2 ? 'a' : 'b' }))
    expect(await admitted(limiter, requests)).toBe(11)
  })

  it('that do not, admit at most the sum (B156)', async () => {
    const plans = definePlans({ a: { ...counted, limit: 10 }, b: { ...counted, limit: 11, window: '2h' } })
    const limiter = new Limiter({ store: new WatchedStore(), plans })
    const requests = Array.from({ length: 60 }, (_, i) => ({ key: 'k', plan: i % 2 ? 'a' : 'b' }))
    expect(await admitted(limiter, requests)).toBe(21)
  })

  it('may be unlimited: the store is not asked', async () => {
    const store = new WatchedStore()
    const limiter = new Limiter({ store, plans: { enterprise: 'unlimited' } })
    expect(await limiter.consume({ key: 'k', plan: 'enterprise', cost: 1e9 })).toMatchObject({
      allowed: true,
      reason: 'unlimited',
      source: 'none',
      plan: 'enterprise',
      limit: Number.POSITIVE_INFINITY,
      remaining: Number.POSITIVE_INFINITY,
      policies: [],
    })
    expect(store.calls).toEqual([])
  })

  it.each(['gold', 'Free', '__proto__', 'constructor', undefined, null, 1])(
    'know %p for no plan (B152)',
    (plan) => {
      const limiter = new Limiter({ plans: { free: short } })
      expect(limiter.hasPlan(plan)).toBe(false)
      expect(limiter.hasPlan('free')).toBe(true)
    },
  )

  it('are none where there are none', () => {
    const limiter = new Limiter(short)
    expect(limiter.hasPlans).toBe(false)
    expect(limiter.hasPlan('free')).toBe(false)
  })
})

describe('a limit of the request', () => {
  it('is bounded in what it keeps: the thousandth limit counts like the first', async () => {
    const limiter = new Limiter({
      name: 'l',
      store: new WatchedStore(),
      algorithm: 'fixed-window',
      limit: 1,
      window: '1h',
    })
    for (let limit = 1; limit <= 2500; limit++) {
      expect((await limiter.consume({ key: 'k', limit })).remaining).toBe(0)
    }
  })
})

describe('keys', () => {
  const tuples: [string, string][][] = [
    [
      ['2', '11'],
      ['21', '1'],
    ],
    [
      ['a:b', 'c'],
      ['a', 'b:c'],
    ],
    [
      ['a', ''],
      ['a:', ':'],
    ],
    [
      ['a}', ':x'],
      ['a', '}:x'],
    ],
  ]

  it.each(tuples)('of limiter and policy are told apart: %j and %j (B14)', async (one, other) => {
    const keysOf = async ([name, policy]: [string, string]) => {
      const store = new WatchedStore()
      await new Limiter({ name, store, policies: [{ ...short, name: policy || '-' }] }).consume({ key: 'k' })
      return store.keys
    }
    expect(await keysOf(one)).not.toEqual(await keysOf(other))
  })

  it.each(['}', '{', '}:default:1-per-1m:sc60000', '{}', '', '\0', '\ud800', '*', 'x'.repeat(2 ** 20)])(
    'cannot end their hash tag, or be of no length or bound: %j (B14, B24)',
    async (key) => {
      const store = new WatchedStore()
      await new Limiter({ store, ...short }).consume({ key })
      expect(store.keys[0]).toMatch(/^1:\{[^{}]{1,128}\}:default:3-per-1m:sc60000$/)
    },
  )

  it('count apart when only their last byte differs (B24)', async () => {
    const limiter = new Limiter({ store: new WatchedStore(), limit: 1, window: '1m' })
    const long = 'x'.repeat(2 ** 20 - 1)
    const requests = ['a', 'b', 'a'].map((end) => ({ key: long + end }))
    expect(await admitted(limiter, requests)).toBe(2)
  })

  it('may be any word: none is reserved (B16)', async () => {
    const store = new MemoryStore({ maxKeys: 6, nowUs: manualClock().nowUs })
    const limiter = new Limiter({ store, limit: 2, window: '1m' })
    for (const key of ['__overflow__', 'default', 'global', 'unknown', '*', '']) {
      expect(await admitted(limiter, times(3, { key }))).toBe(2)
    }
    expect(store.size).toBe(6)
  })
})

describe('events', () => {
  it('tell of every decision, denied, peeked and skipped ones too', async () => {
    const events: SluiceEvent[] = []
    const limiter = new Limiter({ name: 'l', limit: 1, window: '1m', onEvent: (event) => events.push(event) })
    const decisions = [
      await limiter.consume({ key: 'k' }),
      await limiter.consume({ key: 'k' }),
      await limiter.peek({ key: 'k' }),
      limiter.skip('k'),
    ]
    expect(decisions.map((decision) => decision.reason)).toEqual(['ok', 'quota', 'quota', 'skipped'])
    expect(events).toEqual(decisions.map((decision) => ({ type: 'decision', limiter: 'l', decision })))
  })

  it('whose listener throws refuse nobody; the mistake is logged', async () => {
    const warn = jest.fn()
    const onEvent = () => {
      throw new TypeError('oops')
    }
    const limiter = new Limiter({ ...short, onEvent, logger: { warn } })
    expect(await limiter.consume({ key: 'k' })).toMatchObject({ allowed: true, remaining: 2 })
    expect(warn).toHaveBeenCalledWith(expect.stringContaining('onEvent failed'))
  })
})

describe('a warning', () => {
  it('is one event and one line for each cause', () => {
    const warn = jest.fn()
    const onEvent = jest.fn()
    const limiter = new Limiter({ ...short, onEvent, logger: { warn } })
    for (const message of ['first', 'first', 'second', 'first']) limiter.warn('SLUICE_UNKNOWN_PLAN', message)
    expect(warn.mock.calls).toEqual([
      ['sluice: first (SLUICE_UNKNOWN_PLAN)'],
      ['sluice: second (SLUICE_UNKNOWN_PLAN)'],
    ])
    expect(onEvent.mock.calls.map(([event]) => event)).toEqual([
      { type: 'warning', limiter: 'default', code: 'SLUICE_UNKNOWN_PLAN', message: 'first' },
      { type: 'warning', limiter: 'default', code: 'SLUICE_UNKNOWN_PLAN', message: 'second' },
    ])
  })

  it('of a cause that depends on requests is bounded', () => {
    const warn = jest.fn()
    const limiter = new Limiter({ ...short, logger: { warn } })
    for (let i = 0; i < 3000; i++) limiter.warn('SLUICE_UNKNOWN_PLAN', `plan ${i}`)
    limiter.warn('SLUICE_LONG_QUEUE', 'another matter')
    expect(warn).toHaveBeenCalledTimes(101)
  })

  it('of a store reaches the limiter whose request revealed it', async () => {
    const onEvent = jest.fn()
    const warn = jest.fn()
    const store = new MemoryStore({ maxKeys: 1, nowUs: manualClock().nowUs })
    const limiter = new Limiter({ store, limit: 1, window: '1m', onEvent, logger: { warn } })
    for (const key of ['a', 'b', 'c']) await limiter.consume({ key })
    const warnings = onEvent.mock.calls.map(([event]) => event).filter((event) => event.type === 'warning')
    expect(warnings).toMatchObject([
      { code: 'SLUICE_MEMORY_FULL', message: expect.stringContaining('`maxKeys` (1)') },
    ])
    expect(warn).toHaveBeenCalledTimes(1)
  })
})

describe('closing a limiter', () => {
  it('refuses what comes later, and may be done twice', async () => {
    const limiter = new Limiter({ name: 'login', ...short })
    await limiter.close()
    await limiter.close()
    for (const method of ['consume', 'peek'] as const) {
      const error = await errorOf(() => limiter[method]({ key: 'k' }))
      expect(error.code).toBe('SLUICE_CLOSED')
      expect(error.message).toContain('"login"')
    }
  })

  it('twice frees its name once: a successor keeps it', async () => {
    const store = new MemoryStore()
    const first = new Limiter({ store, ...short })
    await first.close()
    new Limiter({ store, ...short })
    await first.close()
    expect(() => new Limiter({ store, ...short })).toThrow('SLUICE_DUPLICATE_NAME')
  })

  it('leaves a store that was given open for others (B162)', async () => {
    const store = new WatchedStore()
    const [first, second] = ['a', 'b'].map((name) => new Limiter({ name, store, ...short })) as [
      Limiter,
      Limiter,
    ]
    await first.close()
    expect(await second.consume({ key: 'k' })).toMatchObject({ allowed: true, degraded: false })
    await second.close()
    expect(store.closed).toBe(0)
  })
})

describe('time', () => {
  it('is that of the store', async () => {
    const clock = manualClock(1_000_000_000)
    const limiter = new Limiter({
      store: new MemoryStore({ nowUs: clock.nowUs }),
      algorithm: 'fixed-window',
      limit: 1,
      window: '1m',
    })
    const first = await limiter.consume({ key: 'k' })
    expect(first.atMs).toBe(1_000_000_000)
    const denied = await limiter.consume({ key: 'k' })
    clock.advance(denied.retryAfterMs - 1)
    expect((await limiter.consume({ key: 'k' })).allowed).toBe(false)
    clock.advance(1)
    expect((await limiter.consume({ key: 'k' })).allowed).toBe(true)
  })
})
