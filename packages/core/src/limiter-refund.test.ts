import { errorOf } from '../test/error-of.js'
import { manualClock } from '../test/manual-clock.js'
import { type Algorithm, algorithmNames } from './algorithms/index.js'
import { Limiter } from './limiter.js'
import type { LimiterOptions } from './limiter-options.js'
import { MemoryStore } from './memory-store.js'
import { definePlans } from './plans.js'
import type { Policy } from './policy.js'
import type { Store } from './store.js'

function setUp(options: Partial<LimiterOptions & Policy>) {
  const clock = manualClock()
  const store = new MemoryStore({ nowUs: clock.nowUs })
  const limiter = new Limiter({ store, name: 'test', ...options } as LimiterOptions)
  return { clock, store, limiter }
}

const remainingOf = async (limiter: Limiter, key = 'a'): Promise<number> =>
  (await limiter.peek({ key, cost: 0 })).remaining

describe('refund', () => {
  it.each<[Algorithm]>(algorithmNames.map((name) => [name]))(
    'gives back what a decision charged under %s, once',
    async (algorithm) => {
      const { limiter } = setUp({ algorithm, limit: 10, window: '1m' })
      const whole = await remainingOf(limiter)
      const decision = await limiter.consume({ key: 'a', cost: 1 })
      expect(await remainingOf(limiter)).toBe(whole - 1)
      await limiter.refund(decision)
      expect(await remainingOf(limiter)).toBe(whole)
      await limiter.consume({ key: 'a', cost: 1 })
      await limiter.refund(decision)
      expect(await remainingOf(limiter)).toBe(whole - 1)
    },
  )

  it('gives back some units, and of more than were charged only those', async () => {
    const { limiter } = setUp({ algorithm: 'fixed-window', limit: 10, window: '1m' })
    await limiter.refund(await limiter.consume({ key: 'a', cost: 5 }), 2)
    expect(await remainingOf(limiter)).toBe(7)
    await limiter.refund(await limiter.consume({ key: 'a', cost: 1 }), 1e9)
    expect(await remainingOf(limiter)).toBe(7)
  })

  it('gives back to every policy that was charged, and to no shadow that was not', async () => {
    const { limiter } = setUp({
      policies: [
        { name: 'wide', algorithm: 'fixed-window', limit: 10, window: '1h' },
        { name: 'narrow', algorithm: 'fixed-window', limit: 2, window: '1m', shadow: true },
      ],
    })
    await limiter.consume({ key: 'a', cost: 2 })
    const decision = await limiter.consume({ key: 'a', cost: 2 })
    expect(decision.policies.map(({ allowed }) => allowed)).toEqual([true, false])
    await limiter.refund(decision)
    const { policies } = await limiter.peek({ key: 'a', cost: 0 })
    expect(policies.map(({ remaining }) => remaining)).toEqual([8, 0])
  })

  it('does nothing for a denial, a peek, and a decision of another limiter B132', async () => {
    const { store, limiter } = setUp({ algorithm: 'fixed-window', limit: 2, window: '1m' })
    const other = new Limiter({ store, name: 'other', algorithm: 'fixed-window', limit: 2, window: '1m' })
    const peeked = await limiter.peek({ key: 'a', cost: 2 })
    const charged = await limiter.consume({ key: 'a', cost: 2 })
    const denied = await limiter.consume({ key: 'a' })
    await limiter.refund(peeked)
    await limiter.refund(denied)
    await other.refund(charged)
    expect(await remainingOf(limiter)).toBe(0)
    expect(await remainingOf(other)).toBe(2)
  })

  it.each([
    ['fixed-window', 60_000],
    ['sliding-window-counter', 120_000],
    ['sliding-window-log', 60_000],
    ['sliding-window-ring', 63_000],
    ['token-bucket', 60_000],
    ['gcra', 60_000],
  ] as const)('of %s reaches no later window', async (algorithm, laterMs) => {
    const { clock, limiter } = setUp({ algorithm, limit: 10, window: '1m' })
    const early = await limiter.consume({ key: 'a', cost: 10 })
    clock.advance(laterMs)
    await limiter.consume({ key: 'a', cost: 3 })
    const before = await remainingOf(limiter)
    await limiter.refund(early)
    expect(await remainingOf(limiter)).toBe(before)
  })

  it.each([0.5, -1, Number.NaN, '1', 1e10])('refuses %p units', async (units) => {
    const { limiter } = setUp({ limit: 1, window: '1m' })
    const decision = await limiter.consume({ key: 'a' })
    await expect(limiter.refund(decision, units as number)).rejects.toMatchObject({ code: 'SLUICE_BAD_COST' })
    expect(await remainingOf(limiter)).toBe(0)
  })

  it('that fails is not tried again, since it may have arrived', async () => {
    const { store } = setUp({ limit: 1, window: '1m' })
    let refunds = 0
    const failing = new Proxy(store, {
      get: (target, name) => {
        const method = (target as unknown as Record<PropertyKey, unknown>)[name]
        if (name === 'refund') return async () => Promise.reject(new Error(`down ${++refunds}`))
        return typeof method === 'function' ? method.bind(target) : method
      },
    }) as Store
    const limiter = new Limiter({ store: failing, name: 'failing', limit: 1, window: '1m' })
    const decision = await limiter.consume({ key: 'a' })
    await expect(limiter.refund(decision)).rejects.toThrow('down 1')
    await limiter.refund(decision)
    expect(refunds).toBe(1)
  })
})

describe('reset', () => {
  it('forgets what a key used under every policy and plan, and no other key', async () => {
    const plans = definePlans({
      free: { limit: 5, window: '1h' },
      pro: [
        { limit: 5, window: '1s', algorithm: 'gcra' },
        { limit: 9, window: '1d', algorithm: 'fixed-window' },
      ],
    })
    const { limiter } = setUp({ plans })
    for (const key of ['a', 'b']) {
      for (const plan of ['free', 'pro']) await limiter.consume({ key, plan, cost: 4 })
    }
    await limiter.reset('a')
    const left = async (key: string, plan: string) =>
      (await limiter.peek({ key, plan, cost: 0 })).policies.map(({ remaining }) => remaining)
    expect([await left('a', 'free'), await left('a', 'pro')]).toEqual([[5], [5, 9]])
    expect([await left('b', 'free'), await left('b', 'pro')]).toEqual([[1], [1, 5]])
  })

  it('of a fresh key leaves no trace that frees it later B164', async () => {
    const { limiter } = setUp({ algorithm: 'fixed-window', limit: 1, window: '1h' })
    await limiter.consume({ key: 'a' })
    await limiter.reset('a')
    expect(await limiter.consume({ key: 'a' })).toMatchObject({ allowed: true })
    expect(await limiter.consume({ key: 'a' })).toMatchObject({ allowed: false })
  })

  it('and unblock refuse a key that is no string', async () => {
    const { limiter } = setUp({ limit: 1, window: '1m', blocks: true })
    await expect(limiter.reset(7 as never)).rejects.toMatchObject({ code: 'SLUICE_BAD_KEY' })
    await expect(limiter.unblock(undefined as never)).rejects.toMatchObject({ code: 'SLUICE_BAD_KEY' })
  })
})

describe('block', () => {
  const options = { algorithm: 'fixed-window', limit: 5, window: '1h', blocks: true } as const

  it('refuses a key until it ends, charging nothing, and no other key', async () => {
    const { clock, limiter } = setUp(options)
    await limiter.consume({ key: 'a', cost: 2 })
    await limiter.block('a', '10s')
    clock.advance(4000)
    expect(await limiter.consume({ key: 'a' })).toMatchObject({
      allowed: false,
      reason: 'blocked',
      retryAfterMs: 6000,
      remaining: 0,
      policies: [{ name: 'test', allowed: true, remaining: 3 }],
    })
    expect(await limiter.consume({ key: 'b' })).toMatchObject({ allowed: true, remaining: 4 })
    clock.advance(6000)
    expect(await limiter.consume({ key: 'a' })).toMatchObject({ allowed: true, remaining: 2 })
  })

  it('outranks cost and quota, and waits for the longest of them', async () => {
    const { limiter } = setUp(options)
    await limiter.block('a', '1s')
    await limiter.consume({ key: 'b', cost: 5 })
    await limiter.block('b', '1s')
    const { retryAfterMs, reason } = await limiter.consume({ key: 'b' })
    expect([reason, retryAfterMs > 1000]).toEqual(['blocked', true])
    expect(await limiter.consume({ key: 'a', cost: 6 })).toMatchObject({
      reason: 'blocked',
      retryAfterMs: Number.POSITIVE_INFINITY,
    })
  })

  it('is replaced by another, ended by unblock, and untouched by reset and by refused attempts B26', async () => {
    const { clock, limiter } = setUp(options)
    await limiter.block('a', 'forever')
    await limiter.block('a', '15m')
    await limiter.reset('a')
    for (let minute = 0; minute < 15; minute++) {
      expect(await limiter.consume({ key: 'a' })).toMatchObject({ allowed: false, reason: 'blocked' })
      clock.advance(60_000)
    }
    expect(await limiter.consume({ key: 'a' })).toMatchObject({ allowed: true })
    await limiter.block('a', 'forever')
    await limiter.unblock('a')
    await limiter.unblock('never blocked')
    expect(await limiter.consume({ key: 'a' })).toMatchObject({ allowed: true })
  })

  it('for sixty days does not end after a second B150', async () => {
    const { clock, limiter } = setUp(options)
    await limiter.block('a', '60d')
    clock.advance(1000)
    expect(await limiter.consume({ key: 'a' })).toMatchObject({ allowed: false })
  })

  it('denies a key of an unlimited plan too', async () => {
    const { limiter } = setUp({ plans: definePlans({ all: 'unlimited' }), blocks: true })
    expect(await limiter.consume({ key: 'a', plan: 'all' })).toMatchObject({ reason: 'unlimited' })
    await limiter.block('a', '1m')
    expect(await limiter.consume({ key: 'a', plan: 'all' })).toMatchObject({
      allowed: false,
      reason: 'blocked',
      retryAfterMs: 60_000,
      policies: [],
    })
  })

  it('is kept when the store is full of fresh keys', async () => {
    const clock = manualClock()
    const store = new MemoryStore({ nowUs: clock.nowUs, maxKeys: 10 })
    const limiter = new Limiter({ store, name: 'test', ...options })
    await limiter.block('a', '1h')
    for (let i = 0; i < 100; i++) await limiter.consume({ key: `fresh ${i}` })
    expect(await limiter.consume({ key: 'a' })).toMatchObject({ reason: 'blocked' })
  })

  it('is a coded error on a limiter without blocks, which looks for none', async () => {
    const { limiter } = setUp({ limit: 1, window: '1m' })
    await expect(limiter.block('a', '1m')).rejects.toMatchObject({ code: 'SLUICE_BAD_OPTION' })
    await expect(limiter.unblock('a')).rejects.toMatchObject({ code: 'SLUICE_BAD_OPTION' })
  })

  it.each([
    ['soon', 'SLUICE_BAD_DURATION'],
    [0, 'SLUICE_BAD_DURATION'],
    ['200y', 'SLUICE_BAD_OPTION'],
  ])('refuses the duration %p', async (duration, code) => {
    const { limiter } = setUp(options)
    await expect(limiter.block('a', duration)).rejects.toMatchObject({ code })
  })

  it('refuses a value of blocks that is no boolean', async () => {
    expect(await errorOf(() => setUp({ ...options, blocks: 1 as never }))).toMatchObject({
      code: 'SLUICE_BAD_OPTION',
    })
  })
})
