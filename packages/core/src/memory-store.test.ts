import { errorOf } from '../test/error-of.js'
import { manualClock } from '../test/manual-clock.js'
import { processClockUs } from './clock.js'
import { Limiter } from './limiter.js'
import { MemoryStore, type MemoryStoreOptions } from './memory-store.js'
import { type Policy, resolvePolicy } from './policy.js'
import type { Check } from './store.js'

function setUp(maxKeys: number, more: Partial<Policy> = {}) {
  const clock = manualClock()
  const store = new MemoryStore({ maxKeys, nowUs: clock.nowUs })
  const policy = resolvePolicy({ algorithm: 'fixed-window', limit: 100, window: '1m', ...more })
  const warn = jest.fn()
  const check = (key: string, cost = 1, by = policy): Check => ({ key, policy: by, least: cost, most: cost })
  const consume = async (key: string, cost?: number, by?: typeof policy) => {
    const [verdict] = await store.consume([check(key, cost, by)], { timeoutMs: 100, warn })
    return verdict?.allowed
  }
  const consumeEach = async (prefix: string, count: number, cost?: number) => {
    for (let i = 0; i < count; i++) await consume(`${prefix}${i}`, cost)
  }
  const remaining = async (prefix: string, count: number) => {
    const keys = Array.from({ length: count }, (_, i) => `${prefix}${i}`)
    return Promise.all(keys.map(async (key) => (await store.peek([check(key)]))[0]?.remaining as number))
  }
  /** How many of the keys of this prefix are not exhausted. */
  const free = async (prefix: string, count: number) =>
    (await remaining(prefix, count)).filter((n) => n > 0).length
  /** How many of the keys of this prefix are remembered. */
  const used = async (prefix: string, count: number) =>
    (await remaining(prefix, count)).filter((n) => n < 100).length
  return { clock, store, check, consume, consumeEach, free, used, warn }
}

describe('the options of a MemoryStore', () => {
  it.each<[unknown, string, string[]]>([
    ...[0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 1e7 + 1, null, '10', 10n].map(
      (maxKeys) =>
        [{ maxKeys }, 'SLUICE_BAD_OPTION', ['`maxKeys`', '1 to 10,000,000']] as [unknown, string, string[]],
    ),
    [{ nowUs: 0 }, 'SLUICE_BAD_OPTION', ['`nowUs`', '0', 'a function']],
    [{ nowUs: null }, 'SLUICE_BAD_OPTION', ['`nowUs`', 'null', 'a function']],
    [{ max: 1 }, 'SLUICE_UNKNOWN_OPTION', ['`max`', 'Known options: maxKeys, nowUs']],
  ])('are refused: %p', async (options, code, parts) => {
    const error = await errorOf(() => new MemoryStore(options as MemoryStoreOptions))
    expect(error.code).toBe(code)
    for (const part of parts) expect(error.message).toContain(part)
  })
})

describe('a MemoryStore', () => {
  it.each([1, 2, 3, 255, 256, 257, 1000])('never holds more than its maxKeys, here %p', async (maxKeys) => {
    const { store, consumeEach } = setUp(maxKeys)
    await consumeEach('k', maxKeys)
    expect(store.size).toBe(maxKeys)
    await consumeEach('more', 2 * maxKeys)
    expect(store.size).toBe(maxKeys)
  })

  it('holds nothing for keys that were only peeked at, denied or charged 0', async () => {
    const { store, check, consume } = setUp(10)
    await store.peek([check('a')])
    await consume('b', 0)
    await consume('c', 101)
    expect(store.size).toBe(0)
  })

  it('counts a key it still holds after any number of others came and went', async () => {
    const { consume, consumeEach } = setUp(500)
    await consume('busy', 90)
    for (let round = 0; round < 10; round++) {
      await consumeEach(`${round}:`, 1000)
      expect(await consume('busy')).toBe(true)
    }
    expect(await consume('busy')).toBe(false)
  })

  it('is bounded under one-time visitors, and keeps no timer for any of them (B158, B162)', async () => {
    jest.useFakeTimers()
    try {
      const { store, clock, consumeEach } = setUp(1000)
      for (let round = 0; round < 10; round++) {
        await consumeEach(`${round}:`, 2000)
        clock.advance(120_000)
        expect(store.size).toBe(1000)
      }
      expect(jest.getTimerCount()).toBe(0)
    } finally {
      jest.useRealTimers()
    }
  })

  it('answers for a key that it forgot as for a new one', async () => {
    const { store, check, consume } = setUp(1)
    await consume('a', 60)
    await consume('b', 60)
    expect(await store.peek([check('a')])).toMatchObject([{ allowed: true, remaining: 99 }])
  })

  it('stays whole where the keys of one call push each other out', async () => {
    const { store, check, consume } = setUp(2)
    for (let i = 0; i < 200; i++) {
      await store.consume([check('a'), check(`new${i}`), check('b')])
      expect(store.size).toBe(2)
    }
    await consume('last', 100)
    expect(await consume('last')).toBe(false)
  })

  it('charges a key that another key of the same call pushed out', async () => {
    const { store, check, consume } = setUp(2)
    await consume('a')
    await consume('exhausted', 100)
    await store.consume([check('new'), check('a')])
    expect(await store.peek([check('a'), check('exhausted')])).toMatchObject([
      { remaining: 98 },
      { remaining: 0 },
    ])
  })

  it('refuses what comes after close, which may be done twice', async () => {
    const { store, check, consume } = setUp(10)
    await consume('a')
    await store.close()
    await store.close()
    expect(store.size).toBe(0)
    expect((await errorOf(() => store.consume([check('a')]))).code).toBe('SLUICE_CLOSED')
    expect((await errorOf(() => store.peek([check('a')]))).code).toBe('SLUICE_CLOSED')
  })
})

describe('a limiter on a MemoryStore', () => {
  it.each(['consume', 'peek'] as const)(
    'asks its %s, also where that was replaced or inherited',
    async (method) => {
      class Deaf extends MemoryStore {
        [method] = async (): Promise<never> => {
          throw new Error('asked')
        }
      }
      const replaced = new MemoryStore()
      replaced[method] = new Deaf()[method]
      for (const store of [replaced, new Deaf()]) {
        const limiter = new Limiter({ store, limit: 1, window: '1m', logger: { warn: () => {} } })
        expect(await limiter[method]({ key: 'a' })).toMatchObject({ reason: 'store-error', degraded: true })
      }
      const limiter = new Limiter({ store: new MemoryStore(), limit: 1, window: '1m' })
      expect(await limiter[method]({ key: 'a' })).toMatchObject({ reason: 'ok', source: 'store' })
    },
  )

  it('holds a key once that one call names twice', async () => {
    const { store, check } = setUp(10)
    await store.consume([check('a'), check('a')])
    expect(store.size).toBe(1)
  })
})

describe('a full MemoryStore', () => {
  it('frees no exhausted key for a flood of fresh ones, however the exhausted ones came in (B160)', async () => {
    const { consumeEach, free, warn } = setUp(1000)
    await consumeEach('exhausted', 10, 100)
    await consumeEach('flood', 20_000)
    expect(await free('exhausted', 10)).toBe(0)
    expect(warn).not.toHaveBeenCalled()
  })

  it('frees no key that was exhausted little by little', async () => {
    const { consumeEach, free } = setUp(101)
    for (const cost of [1, 50, 49]) await consumeEach('exhausted', 100, cost)
    await consumeEach('flood', 1000)
    expect(await free('exhausted', 100)).toBe(0)
  })

  it('frees no exhausted key until all others are as exhausted, and then says so', async () => {
    const { consume, consumeEach, free, warn } = setUp(1000)
    await consumeEach('exhausted', 999, 100)
    await consume('fresh')
    await consumeEach('flood', 1000)
    expect(await free('exhausted', 999)).toBe(0)
    expect(warn).not.toHaveBeenCalled()
    await consumeEach('late', 2, 100)
    expect((await free('exhausted', 999)) + (await free('late', 2))).toBe(1)
    expect(warn).toHaveBeenCalledWith('SLUICE_MEMORY_FULL', expect.stringContaining('`maxKeys` (1000)'))
  })

  it.each([
    ['exhausted', 100],
    ['nearly exhausted', 99],
    ['half used', 50],
  ])('forgets keys that are whole again first, though they were %s', async (_, cost) => {
    const { clock, consumeEach, used, warn } = setUp(50)
    await consumeEach('past', 40, cost)
    clock.advance(60_000)
    await consumeEach('present', 50, 10)
    expect(await used('present', 50)).toBe(50)
    expect(warn).not.toHaveBeenCalled()
  })

  it('prefers, of keys used alike, the one that is whole again soonest', async () => {
    const { check, consume, store } = setUp(4)
    const day = resolvePolicy({ algorithm: 'fixed-window', limit: 100, window: '1d' })
    const second = resolvePolicy({ algorithm: 'fixed-window', limit: 100, window: '1s' })
    await consume('day', 100, day)
    for (let i = 0; i < 50; i++) await consume(`second${i}`, 100, second)
    expect((await store.peek([check('day', 1, day)]))[0]?.allowed).toBe(false)
  })

  it('counts a used share by the limit of the last charge', async () => {
    const { consume, consumeEach, check, store } = setUp(3)
    const policy = resolvePolicy({ algorithm: 'fixed-window', limit: 10, window: '1m' })
    await consume('raised', 10, policy)
    await consume('raised', 1, policy.withLimit(1000))
    await consumeEach('half', 2, 50)
    await consume('new', 50)
    expect((await store.peek([check('raised', 1000, policy.withLimit(1000))]))[0]?.allowed).toBe(true)
  })
})

describe('the clock of the process', () => {
  it('counts whole microseconds since the epoch, and never runs back', () => {
    const before = Date.now()
    const readings = Array.from({ length: 1000 }, processClockUs)
    expect(readings.every(Number.isSafeInteger)).toBe(true)
    expect(readings).toEqual([...readings].sort((a, b) => a - b))
    // The process's clock does not follow corrections of the wall clock after its start.
    expect(Math.abs((readings[0] as number) / 1000 - before)).toBeLessThan(86_400_000)
  })
})
