import type { Decision } from '../decision.js'
import type { SluiceEvent } from '../events.js'
import { Limiter } from '../limiter.js'
import type { LimiterOptions } from '../limiter-options.js'
import { MemoryStore } from '../memory-store.js'
import type { Policy } from '../policy.js'
import type { Store, Verdict } from '../store.js'

const short = { limit: 3, window: '1m' } as const
const down = new Error('store failed')

/** A store whose answer the test gives. */
function storeThat(consume: Store['consume']): Store {
  const nothing = async (): Promise<void> => {}
  return { shared: true, consume, peek: consume, refund: nothing, reset: nothing, close: nothing }
}

/** Stores on one server, which can go away. */
function storesOnOne(count: number): { readonly stores: readonly Store[]; goAway(): void } {
  const memory = new MemoryStore()
  let away = false
  const ask: Store['consume'] = (checks) => (away ? Promise.reject(down) : memory.consume(checks))
  return {
    stores: Array.from({ length: count }, () => storeThat(ask)),
    goAway() {
      away = true
    },
  }
}

const storeThatFails = (): Store => storeThat(() => Promise.reject(down))

describe.each(['allow', 'deny'] as const)("onStoreError '%s'", (onStoreError) => {
  const failures: [string, () => Promise<never>][] = [
    [
      'throws',
      () => {
        throw new Error('store failed')
      },
    ],
    ['rejects', () => Promise.reject(new Error('store failed'))],
  ]

  it.each(failures)('answers when the store %s', async (_, fail) => {
    const events: SluiceEvent[] = []
    const limiter = new Limiter({
      store: storeThat(fail),
      ...short,
      onStoreError,
      onEvent: (event) => events.push(event),
    })
    for (const method of ['consume', 'peek'] as const) {
      const decision = await limiter[method]({ key: 'k' })
      expect(decision).toMatchObject({
        allowed: onStoreError === 'allow',
        reason: 'store-error',
        source: 'none',
        degraded: true,
        key: 'k',
        policies: [],
      })
      expect(events.splice(0)).toEqual([
        { type: 'store-error', limiter: 'default', error: new Error('store failed') },
        { type: 'decision', limiter: 'default', decision },
      ])
    }
  })

  it('answers when the store does not, within exactly timeoutMs, and ignores what comes later', async () => {
    jest.useFakeTimers()
    try {
      let answer: (verdicts: readonly Verdict[]) => void = () => {}
      const store = storeThat(
        () =>
          new Promise((resolve) => {
            answer = resolve
          }),
      )
      const events: SluiceEvent[] = []
      const limiter = new Limiter({
        store,
        ...short,
        onStoreError,
        timeoutMs: 50,
        onEvent: (event) => events.push(event),
      })
      const decision = limiter.consume({ key: 'k' })
      await jest.advanceTimersByTimeAsync(49)
      expect(events).toEqual([])
      await jest.advanceTimersByTimeAsync(2)
      expect(await decision).toMatchObject({
        allowed: onStoreError === 'allow',
        reason: 'store-error',
        degraded: true,
      })
      expect(events).toMatchObject([
        { type: 'store-error', error: { code: 'SLUICE_STORE_TIMEOUT' } },
        { type: 'decision' },
      ])
      answer([])
      await jest.advanceTimersByTimeAsync(0)
      expect(events).toHaveLength(2)
      expect(jest.getTimerCount()).toBe(0)
    } finally {
      jest.useRealTimers()
    }
  })

  it('does not stand in the way of an error of the request', () => {
    const limiter = new Limiter({
      store: storeThat(() => Promise.reject(new Error())),
      ...short,
      onStoreError,
    })
    return expect(limiter.consume({ key: 'k', cost: -1 })).rejects.toMatchObject({ code: 'SLUICE_BAD_COST' })
  })
})

describe("onStoreError 'local'", () => {
  const local = { onStoreError: 'local', logger: { warn: () => {} } } as const

  const consume = async (limiter: Limiter, count: number): Promise<Decision[]> => {
    const decisions: Decision[] = []
    for (let i = 0; i < count; i++) decisions.push(await limiter.consume({ key: 'k' }))
    return decisions
  }

  it.each<[string, Policy, number, number]>([
    ['the limit', { limit: 12, window: '1d' }, 4, 3],
    ['rounded down', { limit: 11, window: '1d' }, 4, 2],
    ['at least 1', { limit: 2, window: '1d' }, 4, 1],
    ['nothing of limit 0', { limit: 0, window: '1d' }, 4, 0],
    ['all, for one node', { limit: 12, window: '1d' }, 1, 12],
    ['of the log', { algorithm: 'sliding-window-log', limit: 12, window: '1d' }, 4, 3],
    ['of the ring', { algorithm: 'sliding-window-ring', limit: 12, window: '1d' }, 4, 3],
    ['of the fixed window', { algorithm: 'fixed-window', limit: 12, window: '1d' }, 4, 3],
    ['the burst of a bucket', { algorithm: 'token-bucket', limit: 100, window: '1d', burst: 8 }, 4, 2],
    ['the burst of gcra', { algorithm: 'gcra', limit: 100, window: '1d', burst: 8 }, 4, 2],
    ['the default burst', { algorithm: 'gcra', limit: 12, window: '1d' }, 4, 3],
    ['the queue', { algorithm: 'leaky-bucket', limit: 100, window: '1d', queue: 8 }, 4, 3],
    ['no queue of a queue of 0', { algorithm: 'leaky-bucket', limit: 100, window: '1d', queue: 0 }, 4, 1],
  ])('admits this process its share: %s', async (_, policy, nodes, share) => {
    const limiter = new Limiter({ store: storeThatFails(), ...local, nodes, ...policy })
    const decisions = await consume(limiter, 20)
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(share)
    expect(decisions.at(-1)).toMatchObject({ allowed: false, source: 'local', degraded: true, remaining: 0 })
  })

  it('answers with the numbers of the share, and with reasons as usual', async () => {
    const limiter = new Limiter({ store: storeThatFails(), ...local, nodes: 2, limit: 4, window: '1d' })
    expect(await limiter.peek({ key: 'k' })).toMatchObject({ allowed: true, source: 'local', remaining: 1 })
    const [first, , third] = await consume(limiter, 3)
    expect(first).toMatchObject({ allowed: true, reason: 'ok', source: 'local', limit: 2, remaining: 1 })
    expect(third).toMatchObject({ allowed: false, reason: 'quota', source: 'local', limit: 2 })
    expect(third?.policies).toMatchObject([{ name: '4-per-1d', limit: 2, allowed: false }])
    expect(await limiter.consume({ key: 'other', cost: 3 })).toMatchObject({ reason: 'cost' })
  })

  it('is one share for all limiters of a name on a store, and one of its own for each other name', async () => {
    const store = storeThatFails()
    const policies: Policy[] = [{ limit: 4, window: '1d' }]
    const [a, b] = [1, 2].map(() => new Limiter({ name: 'a', store, policies, ...local, nodes: 2 }))
    const c = new Limiter({ name: 'c', store, policies, ...local, nodes: 2 })
    expect((await consume(a as Limiter, 2)).every(({ allowed }) => allowed)).toBe(true)
    expect((await consume(b as Limiter, 1))[0]?.allowed).toBe(false)
    expect((await consume(c, 1))[0]?.allowed).toBe(true)
  })

  it('gives back what it charged, once, and forgets with reset, which tells that the store was not reached', async () => {
    const limiter = new Limiter({ store: storeThatFails(), ...local, nodes: 1, limit: 2, window: '1d' })
    const [first] = await consume(limiter, 2)
    await limiter.refund(first as Decision)
    await limiter.refund(first as Decision)
    expect((await consume(limiter, 2)).map(({ allowed }) => allowed)).toEqual([true, false])
    await expect(limiter.reset('k')).rejects.toMatchObject({ code: 'SLUICE_STORE_DOWN' })
    expect((await consume(limiter, 1))[0]).toMatchObject({ allowed: true, remaining: 1 })
  })

  it('counts a limit of the request by its share too', async () => {
    const limiter = new Limiter({ name: 'l', store: storeThatFails(), ...local, nodes: 2, ...short })
    expect(await limiter.consume({ key: 'k', limit: 10 })).toMatchObject({ limit: 5, remaining: 4 })
    expect(await limiter.consume({ key: 'k', limit: 20 })).toMatchObject({ limit: 10, remaining: 8 })
  })

  it('takes plans as they come, and knows no blocks', async () => {
    const plans = { free: short, enterprise: 'unlimited' } as const
    const limiter = new Limiter({ store: storeThatFails(), ...local, nodes: 1, blocks: true, plans })
    expect(await limiter.consume({ key: 'k', plan: 'free' })).toMatchObject({ source: 'local', remaining: 2 })
    expect(await limiter.consume({ key: 'k', plan: 'enterprise' })).toMatchObject({
      allowed: true,
      reason: 'store-error',
      source: 'none',
    })
  })

  it.each<[string, Partial<LimiterOptions> & Partial<Policy>, number]>([
    ['no nodes', {}, 1],
    ['no nodes for a policy', { onStoreError: 'deny', policies: [{ ...short, onStoreError: 'local' }] }, 1],
    ['nodes: 1', { nodes: 1 }, 0],
    ['a store of this process', { store: new MemoryStore() }, 0],
  ])('with %s warns %#', async (_, options, warnings) => {
    const lines: string[] = []
    const policy = options.policies ? {} : short
    const logger = { warn: (line: string) => lines.push(line) }
    const limiter = new Limiter({
      store: storeThatFails(),
      onStoreError: 'local',
      ...policy,
      ...options,
      logger,
    })
    for (let i = 0; i < 2; i++) await limiter.consume({ key: 'k' })
    expect(lines.filter((line) => line.includes('SLUICE_NODES_UNKNOWN'))).toHaveLength(warnings)
  })

  it('serves its part of the limit among the processes that the store has counted', async () => {
    const { stores, goAway } = storesOnOne(3)
    const lines: string[] = []
    const logger = { warn: (line: string) => lines.push(line) }
    const limiters = stores.map((store) => new Limiter({ store, ...local, limit: 30, window: '1h', logger }))
    for (const limiter of limiters) {
      await limiter.consume({ key: 'k' })
      // The beat goes out after the decision.
      await new Promise(setImmediate)
    }
    goAway()
    expect(await limiters[2]?.consume({ key: 'k' })).toMatchObject({ source: 'local', limit: 10 })
    expect(lines.filter((line) => line.includes('SLUICE_NODES_UNKNOWN'))).toEqual([])
  })

  it('denies where its part of a policy would be none that can be', async () => {
    const { stores, goAway } = storesOnOne(2)
    const lines: string[] = []
    const policy = { algorithm: 'token-bucket', limit: 3, burst: 200, window: '400d' } as const
    const logger = { warn: (line: string) => lines.push(line) }
    const limiters = stores.map((store) => new Limiter({ store, ...local, ...policy, logger }))
    for (const limiter of limiters) {
      await limiter.consume({ key: 'k' })
      await new Promise(setImmediate)
    }
    goAway()
    // Half of it, 1 per 400 days with a burst of 100, takes more than a century to fill.
    expect(await limiters[1]?.consume({ key: 'k' })).toMatchObject({ allowed: false, reason: 'store-error' })
    expect(lines.join()).toMatch(/default" denies: .*100 years.*SLUICE_BAD_OPTION/)
  })
})

describe('of policies that differ the strictest decides', () => {
  const policy = (name: string, onStoreError: Policy['onStoreError'], limit = 3): Policy => ({
    ...short,
    name,
    limit,
    ...(onStoreError && { onStoreError }),
  })

  it.each<[string, Policy[], Partial<LimiterOptions>, Partial<Decision>]>([
    [
      'deny before allow',
      [policy('a', 'allow'), policy('b', 'deny')],
      {},
      { allowed: false, source: 'none' },
    ],
    [
      'deny before local',
      [policy('a', 'local'), policy('b', 'deny')],
      {},
      { allowed: false, source: 'none' },
    ],
    [
      'local before allow',
      [policy('a', 'allow'), policy('b', 'local')],
      {},
      { allowed: true, source: 'local' },
    ],
    [
      'the limiter where a policy says nothing',
      [policy('a', undefined)],
      { onStoreError: 'deny' },
      { allowed: false },
    ],
    ['a policy before its limiter', [policy('a', 'allow')], { onStoreError: 'deny' }, { allowed: true }],
    [
      'the limiter for its blocks',
      [policy('a', 'allow')],
      { onStoreError: 'deny', blocks: true },
      { allowed: false, reason: 'store-error' },
    ],
    [
      'no shadow',
      [policy('a', 'allow'), { ...policy('b', 'deny'), shadow: true }],
      { onStoreError: 'deny' },
      { allowed: true, source: 'none' },
    ],
  ])('%s', async (_, policies, options, decision) => {
    const limiter = new Limiter({ store: storeThatFails(), policies, nodes: 1, ...options })
    expect(await limiter.consume({ key: 'k' })).toMatchObject({ degraded: true, ...decision })
  })

  it("counts only those that are 'local'", async () => {
    const policies = [policy('open', 'allow', 1), policy('counted', 'local', 2)]
    const limiter = new Limiter({ store: storeThatFails(), policies, nodes: 1, logger: { warn: () => {} } })
    const decisions = [1, 2, 3].map(() => limiter.consume({ key: 'k' }))
    expect((await Promise.all(decisions)).map(({ allowed }) => allowed)).toEqual([true, true, false])
    expect((await decisions[2])?.policies.map(({ name }) => name)).toEqual(['counted'])
  })
})

describe('what could never pass', () => {
  it.each<[string, Partial<Policy>, number, Partial<LimiterOptions>, string]>([
    ['of limit 0', { limit: 0 }, 1, {}, 'cost'],
    ['above the limit', { limit: 3 }, 4, {}, 'cost'],
    ['above the burst', { algorithm: 'gcra', limit: 30, burst: 3 }, 4, {}, 'cost'],
    ['of limit 0', { limit: 0 }, 1, { onStoreError: 'local', nodes: 1 }, 'cost'],
    ['of limit 0', { limit: 0 }, 1, { onStoreError: 'deny' }, 'store-error'],
  ])('%s is not served for want of the store %#', async (_, policy, cost, options, reason) => {
    const limiter = new Limiter({ store: storeThatFails(), ...short, ...policy, ...options })
    expect(await limiter.consume({ key: 'k', cost })).toMatchObject({
      allowed: false,
      degraded: true,
      reason,
    })
  })

  it('under a shadow is served', async () => {
    const policies = [{ ...short, limit: 0, shadow: true }]
    const limiter = new Limiter({ store: storeThatFails(), policies })
    expect(await limiter.consume({ key: 'k' })).toMatchObject({ allowed: true, reason: 'store-error' })
  })
})

it('a policy that has no share for so many nodes is an error at construction, and keeps no name', () => {
  const store = storeThatFails()
  const policy = { algorithm: 'token-bucket', limit: 3, window: '400d', burst: 200 } as const
  const options = { store, ...policy, onStoreError: 'local' as const, logger: { warn: () => {} } }
  expect(() => new Limiter({ ...options, nodes: 2 })).toThrow(/`burst`.*SLUICE_BAD_OPTION/)
  expect(() => new Limiter({ ...options, nodes: 1 })).not.toThrow()
})

describe('a function as onStoreError', () => {
  it('is asked with each failure', async () => {
    const onStoreError = jest.fn((error: Error) => (error === down ? 'deny' : 'allow'))
    const limiter = new Limiter({ store: storeThatFails(), ...short, onStoreError })
    expect(await limiter.consume({ key: 'k' })).toMatchObject({ allowed: false, reason: 'store-error' })
    expect(onStoreError.mock.calls).toEqual([[down]])
  })

  it.each<[string, () => unknown, string]>([
    [
      'throws',
      () => {
        throw new TypeError('oops')
      },
      'threw "oops"',
    ],
    ['returns nothing', () => undefined, 'returned undefined'],
    ['returns a promise', async () => 'allow', 'returned a promise'],
    ['returns another word', () => 'open', 'returned "open"'],
  ])('that %s denies, and is warned of once', async (_, onStoreError, what) => {
    const warn = jest.fn()
    const limiter = new Limiter({
      store: storeThatFails(),
      ...short,
      onStoreError: onStoreError as LimiterOptions['onStoreError'],
      logger: { warn },
    })
    for (let i = 0; i < 2; i++) expect(await limiter.consume({ key: 'k' })).toMatchObject({ allowed: false })
    expect(warn.mock.calls).toEqual([
      [
        expect.stringMatching(
          `limiter "default" denies: its function \`onStoreError\` ${what}.*SLUICE_REQUEST_FUNCTION`,
        ),
      ],
    ])
  })

  it('that rejects does not end the process', async () => {
    const rejection = Promise.reject(new Error('oops'))
    const then = jest.spyOn(rejection, 'then')
    const onStoreError = (() => rejection) as unknown as LimiterOptions['onStoreError']
    const limiter = new Limiter({
      store: storeThatFails(),
      ...short,
      onStoreError,
      logger: { warn: () => {} },
    })
    expect(await limiter.consume({ key: 'k' })).toMatchObject({ allowed: false })
    expect(then).toHaveBeenCalledWith(undefined, expect.any(Function))
  })
})
