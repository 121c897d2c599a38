import { pass } from '../../test/leasing.js'
import { SharedStore } from '../../test/shared-store.js'
import type { Decision } from '../decision.js'
import { Limiter } from '../limiter.js'
import type { LimiterOptions } from '../limiter-options.js'
import { MemoryStore } from '../memory-store.js'
import type { Policy } from '../policy.js'
import type { Store } from '../store.js'

let store: SharedStore
beforeEach(() => {
  jest.useFakeTimers({ now: 1_800_000_000_000 })
  store = new SharedStore()
})
afterEach(() => {
  jest.useRealTimers()
})

/** A limiter of a process alone, that denies where the store fails. */
function limiterOf(options: Partial<LimiterOptions & Policy> = {}): Limiter {
  const form =
    (options.policies ?? options.plans)
      ? {}
      : { limit: 1000, window: '1d', algorithm: 'fixed-window' as const }
  const quiet = { logger: { warn: () => {} }, onStoreError: 'deny' as const }
  return new Limiter({ store, reserve: true, nodes: 1, denyStaleMs: 0, ...quiet, ...form, ...options })
}

/** Asks every 10 ms. */
async function hit(limiter: Limiter, count: number): Promise<Decision[]> {
  const decisions: Decision[] = []
  for (let i = 0; i < count; i++) {
    decisions.push(await limiter.consume({ key: 'k' }))
    await pass(10)
  }
  return decisions
}

/** What the store has left of each policy, as another process sees it. */
async function leftBy(options: Partial<LimiterOptions & Policy> = {}): Promise<readonly number[]> {
  const { allowed, policies } = await limiterOf({ ...options, store: sameStore() }).peek({ key: 'k' })
  return policies.map(({ remaining }) => remaining + (allowed ? 1 : 0))
}

/** The store as another process knows it, where names are free. */
function sameStore(): Store {
  return {
    shared: true,
    consume: (checks, options) => store.consume(checks, options),
    peek: (checks) => store.peek(checks),
    refund: (refunds) => store.refund(refunds),
    reset: (keys) => store.reset(keys),
    close: async () => {},
  }
}

test('a decision says that a lease gave it, and counts down as the store would', async () => {
  const decisions = await hit(limiterOf(), 100)
  expect(decisions.map(({ remaining }) => remaining)).toEqual(Array.from({ length: 100 }, (_, i) => 999 - i))
  expect(decisions.at(-1)).toMatchObject({
    source: 'lease',
    allowed: true,
    reason: 'ok',
    degraded: false,
    limit: 1000,
  })
  expect(store.sent('consume')).toBeLessThan(20)
})

test('a limiter that is closed leaves to the next exactly what was not admitted', async () => {
  const limiter = limiterOf()
  await hit(limiter, 100)
  expect(await leftBy()).not.toEqual([900])
  await limiter.close()
  expect(await leftBy()).toEqual([900])
  expect(await limiterOf().consume({ key: 'k' })).toMatchObject({ allowed: true, remaining: 899 })
})

test('a store of this process alone is not leased from', async () => {
  const limiter = limiterOf({ store: new MemoryStore() })
  for (const { source } of await hit(limiter, 20)) expect(source).toBe('store')
})

test('several policies are leased together, and each tells what it has left', async () => {
  const policies: Policy[] = [
    { name: 'hour', algorithm: 'fixed-window', limit: 500, window: '1h', reserve: true },
    { name: 'day', algorithm: 'fixed-window', limit: 5000, window: '1d', reserve: { max: 12 } },
  ]
  const limiter = limiterOf({ policies })
  const decisions = await hit(limiter, 200)
  expect(decisions.at(-1)?.policies).toMatchObject([
    { name: 'hour', remaining: 300 },
    { name: 'day', remaining: 4800 },
  ])
  expect(Math.max(...store.calls.map(({ most = 0 }) => most))).toBe(12)
  await limiter.close()
  expect(await leftBy({ policies })).toEqual([300, 4800])
})

test('when one policy has nothing left nobody passes, and the others are charged for nothing', async () => {
  const policies: Policy[] = [
    { name: 'hour', algorithm: 'fixed-window', limit: 30, window: '1h' },
    { name: 'day', algorithm: 'fixed-window', limit: 5000, window: '1d' },
  ]
  const limiter = limiterOf({ policies })
  const allowed = (await hit(limiter, 60)).filter((decision) => decision.allowed)
  expect(allowed).toHaveLength(30)
  await limiter.close()
  expect(await leftBy({ policies })).toEqual([0, 4970])
})

test('a policy that only reports never holds a lease up, shortens it or ends it', async () => {
  const policies: Policy[] = [
    { name: 'trial', algorithm: 'sliding-window-ring', limit: 5, window: '1m', shadow: true },
    { name: 'day', algorithm: 'fixed-window', limit: 1000, window: '1d' },
  ]
  const limiter = limiterOf({ policies })
  // Longer than a slice of what only reports.
  const decisions = await hit(limiter, 400)
  expect(decisions.every(({ allowed }) => allowed)).toBe(true)
  expect(decisions.at(-1)?.policies).toMatchObject([
    { allowed: false, shadow: true },
    { allowed: true, remaining: 600 },
  ])
  expect(store.sent('consume')).toBeLessThan(50)
  await limiter.close()
  expect((await leftBy({ policies }))[1]).toBe(600)
})

test('a block ends what is held of its key, and the store decides the next request', async () => {
  const limiter = limiterOf({ blocks: true })
  await hit(limiter, 100)
  await limiter.block('k', '1m')
  expect(await limiter.consume({ key: 'k' })).toMatchObject({ allowed: false, reason: 'blocked' })
  expect(await leftBy()).toEqual([900])
  await limiter.unblock('k')
  expect(await limiter.consume({ key: 'k' })).toMatchObject({ allowed: true, remaining: 899 })
})

test('a reset makes the limit whole, whatever was held', async () => {
  const limiter = limiterOf()
  await hit(limiter, 100)
  await limiter.reset('k')
  expect(await limiter.consume({ key: 'k' })).toMatchObject({ allowed: true, remaining: 999 })
})

test('a decision that a lease gave is refunded once', async () => {
  const limiter = limiterOf()
  const decision = (await hit(limiter, 100)).at(-1) as Decision
  expect(decision.source).toBe('lease')
  await limiter.refund(decision)
  await limiter.refund(decision)
  await limiter.close()
  expect(await leftBy()).toEqual([901])
})

test('a request that waits for a store which fails is answered as onStoreError says, and held units are served on', async () => {
  const limiter = limiterOf()
  await hit(limiter, 100)
  store.fails = () => true
  const decisions = await hit(limiter, 60)
  const served = decisions.filter(({ source }) => source === 'lease')
  expect(served.length).toBeGreaterThan(10)
  expect(decisions.slice(served.length)).toMatchObject(
    decisions.slice(served.length).map(() => ({ allowed: false, reason: 'store-error', degraded: true })),
  )
})

test('processes that count themselves hold nothing until the others had time to notice', async () => {
  const limiter = limiterOf({ nodes: undefined as never })
  const most = (): number => Math.max(0, ...store.calls.splice(0).map(({ most: units = 0 }) => units))
  await hit(limiter, 240)
  expect(most()).toBe(1)
  await hit(limiter, 240)
  expect(most()).toBeGreaterThan(10)
})
