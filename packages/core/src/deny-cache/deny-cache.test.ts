import fc from 'fast-check'
import { blockPolicy } from '../algorithms/block/block.js'
import { algorithmNames } from '../algorithms/index.js'
import { MemoryStore } from '../memory-store.js'
import { type Policy, type ResolvedPolicy, resolvePolicy } from '../policy.js'
import { type Check, checksOf, type Store, type Verdict } from '../store.js'
import { DenyCache } from './deny-cache.js'

const options = { timeoutMs: 100, denyStaleMs: 1000 }

/** A deny cache over a store whose clock and whose calls the test sees; `delayMs` passes on the way to it and back. */
class Bench {
  nowMs = 1_000_000
  delayMs = 0
  calls = 0
  /** Runs while a call is on its way back. */
  meanwhile: (() => unknown) | undefined
  readonly memory = new MemoryStore({ nowUs: () => this.nowMs * 1000 })
  readonly cache: DenyCache

  constructor() {
    const consume: Store['consume'] = async (checks) => {
      this.calls += 1
      this.nowMs += this.delayMs
      const verdicts = await this.memory.consume(checks)
      this.nowMs += this.delayMs
      await this.meanwhile?.()
      return verdicts
    }
    const store = Object.assign(Object.create(this.memory), {
      shared: true,
      consume,
      peek: (checks: readonly Check[]) => this.memory.peek(checks),
      refund: (...refunds: Parameters<Store['refund']>) => this.memory.refund(refunds[0]),
      reset: (keys: readonly string[]) => this.memory.reset(keys),
      close: () => this.memory.close(),
    })
    this.cache = new DenyCache(store, () => this.nowMs)
  }

  consume(checks: readonly Check[], denyStaleMs = options.denyStaleMs): Promise<readonly Verdict[]> {
    return this.cache.consume(checks, { ...options, denyStaleMs })
  }

  /** The verdict of one check, and whether the store was asked for it. */
  async one(policy: ResolvedPolicy, cost = 1, key = 'k'): Promise<Verdict & { asked: boolean }> {
    const { calls } = this
    const [verdict] = await this.consume(checksOf([policy], `${key}:`, cost))
    return { ...(verdict as Verdict), asked: this.calls > calls }
  }
}

const policy = (more: Partial<Policy> = {}): ResolvedPolicy =>
  resolvePolicy({ algorithm: 'gcra', limit: 6, window: '60s', burst: 3, ...more })

let bench: Bench
beforeEach(() => {
  bench = new Bench()
})

it('asks the store about a denied key once in each span of denyStaleMs', async () => {
  const slow = policy({ limit: 1, burst: 1, window: '1h' })
  await bench.one(slow)
  for (let ms = 0; ms < 3000; ms += 10) {
    expect(await bench.one(slow)).toMatchObject({ allowed: false, asked: ms % 1000 === 0 })
    bench.nowMs += 10
  }
})

it('ends a denial when the longest wait of the policies that deny is over, not before', async () => {
  const checks = checksOf(
    [policy({ name: 'a', limit: 600, burst: 1 }), policy({ name: 'b', limit: 300, burst: 1 })],
    'k:',
    1,
  )
  await bench.consume(checks)
  const denied = await bench.consume(checks)
  expect(denied.map(({ retryUs }) => retryUs)).toEqual([100_000, 200_000])
  bench.nowMs += 150
  const repeated = await bench.consume(checks)
  expect(repeated).toMatchObject([
    { source: 'deny-cache', allowed: true, granted: 0, retryUs: 0 },
    { source: 'deny-cache', allowed: false, granted: 0, retryUs: 50_000 },
  ])
  bench.nowMs += 49
  expect(await bench.consume(checks)).toMatchObject([{ allowed: true }, { retryUs: 1000 }])
  expect(bench.calls).toBe(2)
  bench.nowMs += 1
  expect(await bench.consume(checks)).toMatchObject([{ granted: 1 }, { granted: 1 }])
  expect(bench.calls).toBe(3)
})

it('counts the wait from when the store was asked, and what is told from when it answered', async () => {
  const one = policy({ limit: 600, burst: 1 })
  await bench.one(one)
  bench.delayMs = 20
  // The bucket is whole 100 ms after the charge; this is decided 20 ms after it and arrives at 40 ms.
  expect(await bench.one(one)).toMatchObject({ allowed: false, retryUs: 80_000 })
  bench.nowMs += 30
  // In truth 30 ms are left: who waits as told is late by the way back, never early.
  expect(await bench.one(one)).toMatchObject({ asked: false, retryUs: 50_000 })
  // 80 ms after it was sent.
  bench.nowMs += 10
  expect(await bench.one(one)).toMatchObject({ asked: true, allowed: true })
})

it('tells of one moment, whichever time it is asked', async () => {
  const one = policy({ burst: 1 })
  await bench.one(one)
  const first = await bench.one(one)
  bench.nowMs += 400.1234
  const later = await bench.one(one)
  expect(later).toMatchObject({ asked: false, remaining: 0, delayUs: 0 })
  for (const time of ['retryUs', 'replenishUs', 'resetUs'] as const) {
    expect(later.atUs + later[time]).toBe(first.atUs + first[time])
    expect(Number.isInteger(later[time])).toBe(true)
  }
})

describe('another cost', () => {
  it('that is higher and could fit is denied too, with that wait as the least', async () => {
    const three = policy()
    await bench.one(three, 2)
    expect(await bench.one(three, 2)).toMatchObject({ allowed: false, remaining: 1, retryUs: 10_000_000 })
    expect(await bench.one(three, 3)).toMatchObject({ allowed: false, asked: false, retryUs: 10_000_000 })
  })

  it('that could never fit is for the store to tell', async () => {
    const three = policy()
    await bench.one(three, 3)
    await bench.one(three, 1)
    expect(await bench.one(three, 4)).toMatchObject({ asked: true, retryUs: -1 })
    expect(await bench.one(three, 4)).toMatchObject({ asked: false, retryUs: -1 })
    expect(await bench.one(three, 5)).toMatchObject({ asked: false, retryUs: -1 })
  })

  it('that is lower asks, and may pass', async () => {
    const three = policy()
    await bench.one(three, 2)
    expect(await bench.one(three, 2)).toMatchObject({ allowed: false })
    expect(await bench.one(three, 1)).toMatchObject({ asked: true, allowed: true })
    expect(await bench.one(three, 0)).toMatchObject({ asked: true, allowed: true })
  })

  it('has a denial of its own, so that taking turns asks no more', async () => {
    const big = policy({ limit: 100, burst: 100, window: '1h' })
    await bench.one(big, 100)
    for (const cost of [8, 7, 6, 5, 4, 3, 2, 1]) await bench.one(big, cost)
    const { calls } = bench
    for (let round = 0; round < 3; round++) {
      for (const cost of [1, 2, 3, 4, 5, 6, 7, 8]) {
        expect(await bench.one(big, cost)).toMatchObject({ asked: false })
      }
    }
    expect(bench.calls).toBe(calls)
  })
})

it.each<[string, ResolvedPolicy, string]>([
  ['numbers', policy({ name: 'p', limit: 7, burst: 1 }), 'k'],
  ['name', policy({ name: 'q', burst: 1 }), 'k'],
  ['key', policy({ name: 'p', burst: 1 }), 'other'],
])('knows a denial by exact %s', async (_, other, key) => {
  const one = policy({ name: 'p', burst: 1 })
  await bench.one(one)
  await bench.one(one)
  expect(await bench.one(other, 1, key)).toMatchObject({ asked: true })
  expect(await bench.one(policy({ name: 'p', burst: 1 }))).toMatchObject({ asked: false })
})

it('does not take the denial of a shadow for one', async () => {
  const shadow = policy({ burst: 1, shadow: true })
  await bench.one(shadow)
  for (let i = 0; i < 3; i++) expect(await bench.one(shadow)).toMatchObject({ allowed: false, asked: true })
})

it('remembers nothing with denyStaleMs: 0', async () => {
  const one = checksOf([policy({ burst: 1 })], 'k:', 1)
  for (let i = 0; i < 4; i++) await bench.consume(one, 0)
  expect(bench.calls).toBe(4)
})

describe('a change that this process makes to the key ends a denial:', () => {
  const one = policy({ burst: 1 })
  const [check] = checksOf([one], 'k:', 1) as [Check]
  const changes: [string, (charge: Verdict) => Promise<void>][] = [
    ['reset', () => bench.cache.reset([check.key], options)],
    ['refund', ({ atUs, resetUs }) => bench.cache.refund([{ ...check, units: 1, atUs, resetUs }], options)],
  ]

  it.each(changes)('%s', async (_, change) => {
    const charge = await bench.one(one)
    expect(await bench.one(one)).toMatchObject({ allowed: false })
    await change(charge)
    expect(await bench.one(one)).toMatchObject({ allowed: true })
  })

  it.each(changes)('%s, also for a denial that is on its way', async (_, change) => {
    const charge = await bench.one(one)
    bench.meanwhile = () => change(charge)
    expect(await bench.one(one)).toMatchObject({ allowed: false })
    bench.meanwhile = undefined
    expect(await bench.one(one)).toMatchObject({ allowed: true })
  })

  it('the end of a block, whichever of the checks it is', async () => {
    const checks = checksOf([one, blockPolicy()], 'k:', 1)
    const [, look] = checks as [Check, Check]
    const block = { key: look.key, policy: blockPolicy(60_000), least: 1, most: 1 }
    await bench.consume([block])
    expect(await bench.consume(checks)).toMatchObject([{ allowed: true }, { allowed: false }])
    expect(await bench.consume(checks)).toMatchObject([{}, { source: 'deny-cache', allowed: false }])
    await bench.cache.reset([look.key], options)
    expect(await bench.consume(checks)).toMatchObject([{ allowed: true }, { allowed: true }])
  })
})

it('holds a bounded number of denials, the newest of them', async () => {
  const none = resolvePolicy({ limit: 0, window: '1m' })
  for (let i = 0; i < 40_000; i++) await bench.one(none, 1, `k${i}`)
  expect(await bench.one(none, 1, 'k39999')).toMatchObject({ asked: false })
  expect(await bench.one(none, 1, 'k0')).toMatchObject({ asked: true })
})

it('decides a trace of one process as the store would', async () => {
  const request = fc.record({
    key: fc.constantFrom('a', 'b'),
    plan: fc.nat(2),
    cost: fc.integer({ min: 0, max: 5 }),
    waitMs: fc.oneof(fc.constant(0), fc.nat(50), fc.nat(3000)),
  })
  const algorithm = fc.constantFrom(...algorithmNames)
  await fc.assert(
    fc.asyncProperty(algorithm, fc.array(request, { maxLength: 80 }), async (name, trace) => {
      const cached = new Bench()
      const plain = new Bench()
      const policies = [
        resolvePolicy({ algorithm: name, limit: 4, window: '2s' }),
        resolvePolicy({ name: 'x', algorithm: name, limit: 7, window: '5s' }),
        resolvePolicy({ name: 's', algorithm: name, limit: 2, window: '3s', shadow: true }),
      ]
      for (const { key, plan, cost, waitMs } of trace) {
        cached.nowMs += waitMs
        plain.nowMs += waitMs
        const checks = checksOf(policies.slice(0, plan + 1), `${key}:`, cost)
        const allows = (verdicts: readonly Verdict[]): boolean =>
          verdicts.every(({ allowed }, i) => allowed || checks[i]?.policy.shadow)
        const [mine, theirs] = [await cached.consume(checks), await plain.consume(checks, 0)]
        expect(allows(mine)).toBe(allows(theirs))
        // A cost of its own is told its own wait, unless this process spent of the key since.
        expect(mine.map(({ granted }) => granted)).toEqual(theirs.map(({ granted }) => granted))
      }
    }),
    { numRuns: 300 },
  )
})
