import { Limiter } from './limiter.js'
import type { LimiterOptions } from './limiter-options.js'
import { MemoryStore } from './memory-store.js'
import type { Policy } from './policy.js'
import type { Store } from './store.js'

const one = { limit: 1, window: '1h' } as const

/** A shared store, and the calls to it. */
function sharedStore(): { readonly store: Store; readonly calls: string[] } {
  const memory = new MemoryStore()
  const calls: string[] = []
  const store = new Proxy(memory, {
    get(_, name: keyof Store) {
      if (name === 'shared') return true
      calls.push(name)
      return memory[name].bind(memory)
    },
  })
  return { store, calls: calls }
}

let shared: ReturnType<typeof sharedStore>
beforeEach(() => {
  shared = sharedStore()
})

function limiterOf(options: LimiterOptions & Partial<Policy> = {}): Limiter {
  const form = (options.policies ?? options.plans) ? {} : one
  return new Limiter({ store: shared.store, ...form, ...options })
}

/** The calls to the store since it was last asked. */
const calls = (): string[] => shared.calls.splice(0).filter((name) => name !== 'then')

it('says of a denial that it repeats it, and asks no more', async () => {
  const limiter = limiterOf()
  expect(await limiter.consume({ key: 'k' })).toMatchObject({ allowed: true, source: 'store' })
  expect(await limiter.consume({ key: 'k' })).toMatchObject({ allowed: false, source: 'store' })
  calls()
  const decision = await limiter.consume({ key: 'k' })
  expect(decision).toMatchObject({ allowed: false, reason: 'quota', source: 'deny-cache', degraded: false })
  expect(decision.policies).toMatchObject([{ allowed: false, remaining: 0, limit: 1 }])
  expect(calls()).toEqual([])
  expect(await limiter.peek({ key: 'k' })).toMatchObject({ allowed: false, source: 'store' })
})

it.each<[string, LimiterOptions]>([
  ['denyStaleMs: 0', { denyStaleMs: 0 }],
  ['a store of this process', { store: new MemoryStore() }],
])('asks each time with %s', async (_, options) => {
  const limiter = limiterOf(options)
  for (let i = 0; i < 3; i++) expect(await limiter.consume({ key: 'k' })).toMatchObject({ source: 'store' })
})

it('lets a key pass again after reset, refund and unblock, for all limiters of the name', async () => {
  const policies = [one]
  const [limiter, twin] = [limiterOf({ policies, blocks: true }), limiterOf({ policies, blocks: true })]
  const charge = await limiter.consume({ key: 'k' })
  const deny = async (reason: string): Promise<void> => {
    for (const each of [limiter, twin, limiter]) {
      expect(await each.consume({ key: 'k' })).toMatchObject({ allowed: false, reason })
    }
  }
  await deny('quota')
  await twin.reset('k')
  expect(await limiter.peek({ key: 'k' })).toMatchObject({ allowed: true })
  await twin.block('k', '1m')
  await deny('blocked')
  await twin.unblock('k')
  const again = await limiter.consume({ key: 'k' })
  expect(again).toMatchObject({ allowed: true })
  await deny('quota')
  await limiter.refund(again)
  expect(await twin.consume({ key: 'k' })).toMatchObject({ allowed: true })
  expect(charge.allowed).toBe(true)
})

it('takes the plans of a key for different decisions', async () => {
  const limiter = limiterOf({ plans: { free: one, pro: { limit: 5, window: '1d' } } })
  for (const allowed of [true, false, false]) {
    expect(await limiter.consume({ key: 'k', plan: 'free' })).toMatchObject({ allowed })
  }
  expect(await limiter.consume({ key: 'k', plan: 'pro' })).toMatchObject({ allowed: true, source: 'store' })
})

it.each<[Record<string, unknown>, RegExp]>([
  [{ denyStaleMs: -1 }, /`denyStaleMs` is -1\. Expected whole milliseconds from 0 to 60,000/],
  [{ denyStaleMs: 0.5 }, /`denyStaleMs` is 0\.5/],
  [{ denyStaleMs: 60_001 }, /`denyStaleMs` is 60001/],
  [{ reserve: 'yes' }, /`reserve` is "yes"\. Expected true, false, or an object/],
  [{ reserve: { max: 0 } }, /`reserve\.max` is 0/],
  [{ reserve: { ttlMs: 0.5 } }, /`reserve\.ttlMs` is 0\.5/],
  [{ reserve: { size: 5 } }, /Unknown option `size` in reserve/],
])('refuses %j', (options, message) => {
  expect(() => limiterOf(options)).toThrow(message)
})
