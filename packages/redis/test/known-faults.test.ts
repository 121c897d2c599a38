import { randomUUID } from 'node:crypto'
import {
  algorithmNames,
  Limiter,
  MemoryStore,
  type Policy,
  resolvePolicy,
  type Store,
  type Verdict,
} from '@sluice/core'
import { RedisStore } from '../src/index.js'
import { functionalClient } from './redis.js'
import { extraTtlMs, TimedStore } from './timed-store.js'

const client = functionalClient({ keyPrefix: '' })
afterAll(() => client.quit())

const second = 1_000_000
const day = 86_400 * second
const startUs = 20_000 * day

/** One key under one policy, on a store whose clock this sets. */
interface Subject {
  /** Sends one request, `atUs` after the start. */
  ask(atUs: number, cost?: number): Promise<Verdict>
  /** Sends some requests at one instant; how many of them were admitted. */
  admitted(atUs: number, count: number, cost?: number): Promise<number>
  /** What the algorithm lets Redis keep of the key's time, in milliseconds. */
  ttlMs(): Promise<number>
}

type MakeStore = (prefix: string, nowUs: () => number) => Pick<Store, 'consume'>

const inMemory: MakeStore = (_prefix, nowUs) => new MemoryStore({ nowUs })
const inRedis: MakeStore = (prefix, nowUs) => new TimedStore(client, prefix, nowUs)

function makeSubject(makeStore: MakeStore, options: Policy, fromUs = startUs): Subject {
  let nowUs = fromUs
  const policy = resolvePolicy(options)
  const prefix = `test:${randomUUID()}:`
  const store = makeStore(prefix, () => nowUs)
  const ask = async (atUs: number, cost = 1): Promise<Verdict> => {
    nowUs = fromUs + atUs
    const [verdict] = await store.consume([{ key: 'k', policy, least: cost, most: cost }], {
      timeoutMs: 10_000,
    })
    return verdict as Verdict
  }
  return {
    ask,
    async admitted(atUs, count, cost) {
      const verdicts = await Promise.all(Array.from({ length: count }, () => ask(atUs, cost)))
      return verdicts.filter(({ allowed }) => allowed).length
    },
    ttlMs: async () => (await client.pttl(`${prefix}k`)) - extraTtlMs,
  }
}

describe.each([
  ['memory', inMemory],
  ['Redis', inRedis],
])('in %s', (_, makeStore) => {
  const subject = (options: Policy, fromUs?: number): Subject => makeSubject(makeStore, options, fromUs)

  describe('a sliding log', () => {
    test('counts each of the requests of one microsecond, with its whole cost B64', async () => {
      const { ask, admitted } = subject({ algorithm: 'sliding-window-log', limit: 5, window: '10s' })
      expect(await admitted(0, 8)).toBe(5)
      expect(await admitted(0, 3, 2)).toBe(0)
      expect(await admitted(10 * second, 3, 2)).toBe(2)
      expect(await ask(10 * second)).toMatchObject({ allowed: true, remaining: 0 })
      expect((await ask(10 * second)).allowed).toBe(false)
    })

    test.each([10 * second, 10.001 * second])(
      'has forgotten a request after one window, at %d us, and not the one after it B66',
      async (atUs) => {
        const { ask } = subject({ algorithm: 'sliding-window-log', limit: 2, window: '10s' })
        await ask(0)
        await ask(second)
        expect((await ask(10 * second - 1)).allowed).toBe(false)
        expect((await ask(atUs)).allowed).toBe(true)
        expect((await ask(11 * second - 1)).allowed).toBe(false)
        expect((await ask(11 * second)).allowed).toBe(true)
      },
    )

    test('ends a denial when the oldest request ages out, however often it was asked before B89', async () => {
      const { ask, admitted } = subject({ algorithm: 'sliding-window-log', limit: 10, window: '10s' })
      for (let hit = 0; hit < 10; hit++) expect((await ask(hit * second)).allowed).toBe(true)
      expect(await admitted(9.5 * second, 20)).toBe(0)
      expect(await admitted(10.1 * second, 2)).toBe(1)
    })
  })

  test('a fixed window begins anew at its very edge B66', async () => {
    const { ask } = subject({ algorithm: 'fixed-window', limit: 1, window: '10s' })
    await ask(0)
    expect((await ask(10 * second - 1)).allowed).toBe(false)
    expect((await ask(10 * second)).allowed).toBe(true)
  })

  test('a sliding counter carries the weight of the window before B70', async () => {
    const { ask, admitted } = subject({ algorithm: 'sliding-window-counter', limit: 100, window: '60s' })
    await ask(30 * second, 50)
    expect((await ask(66 * second, 10)).remaining).toBe(45)
    expect(await admitted(66 * second, 46)).toBe(45)
  })

  describe('a token bucket', () => {
    test('is not charged for what it denies B68', async () => {
      const { ask } = subject({ algorithm: 'token-bucket', limit: 1, window: '1s', burst: 10 })
      await ask(0, 8)
      expect(await ask(0, 5)).toMatchObject({ allowed: false, remaining: 2 })
      expect(await ask(0, 1_000_000)).toMatchObject({ allowed: false, remaining: 2 })
      expect(await ask(0)).toMatchObject({ allowed: true, remaining: 1, resetUs: 9 * second })
    })

    test('has no second burst after a time at capacity B73', async () => {
      const { ask, admitted } = subject({ algorithm: 'token-bucket', limit: 10, window: '1s', burst: 10 })
      await ask(0)
      await ask(30 * second, 0)
      expect(await admitted(60 * second, 20)).toBe(10)
    })

    test('is refilled by its rate and not as a whole B81', async () => {
      const { admitted } = subject({ algorithm: 'token-bucket', limit: 1, window: '10s', burst: 10 })
      expect(await admitted(0, 10)).toBe(10)
      expect(await admitted(11 * second, 10)).toBe(1)
    })

    test.each([
      ['a million a second', { limit: 1_000_000, window: '1s' }],
      ['10^9 in 30 days', { limit: 1e9, window: '30d' }],
    ])('is full and whole after 30 quiet days, at any time until 2^53 us: %s B77', async (_name, numbers) => {
      for (const fromUs of [startUs, 2 ** 53 - 31 * day]) {
        const { ask } = subject({ algorithm: 'token-bucket', ...numbers }, fromUs)
        await ask(0, numbers.limit)
        expect(await ask(30 * day, numbers.limit)).toMatchObject({ allowed: true, remaining: 0 })
        expect((await ask(30 * day)).allowed).toBe(false)
      }
    })
  })

  test.each([
    [6000, '1s', 6001],
    [2000, '1s', 1],
    [1000, '60s', 1001],
  ])(
    'gcra at %d per %s admits a burst of %d at one instant, then its rate B79',
    async (limit, window, burst) => {
      const { ask, admitted } = subject({ algorithm: 'gcra', limit, window, burst })
      expect(await admitted(0, 10_000)).toBe(burst)
      const everyUs = (Number.parseInt(window, 10) * second) / limit / 2
      let later = 0
      for (let hit = 1; hit <= 2000; hit++) {
        later += (await ask(Math.floor(hit * everyUs))).allowed ? 1 : 0
      }
      expect(Math.abs(later - 1000)).toBeLessThanOrEqual(10)
    },
  )
})

describe('Redis keeps', () => {
  test('a token bucket until it is full and a second more, whatever it was asked for since B68', async () => {
    const policy: Policy = { algorithm: 'token-bucket', limit: 1, window: '1s', burst: 10 }
    const { ask, ttlMs } = makeSubject(inRedis, policy)
    await ask(0, 8)
    await ask(0, 5)
    await ask(0, 1_000_000)
    expect(await ttlMs()).toBeLessThanOrEqual(9000)
  })

  test.each([
    [6000, '1s', 6001],
    [2000, '1s', 1],
    [1_000_000, '1s', 1],
  ])('what gcra at %d per %s and a burst of %d admits, with an expiry B79', async (limit, window, burst) => {
    const { ask, ttlMs } = makeSubject(inRedis, { algorithm: 'gcra', limit, window, burst })
    await ask(0)
    expect(await ttlMs()).toBeGreaterThan(-extraTtlMs)
  })
})

describe.each(algorithmNames.map((name) => [name]))('%s', (algorithm) => {
  const limit = 5
  const policy = { algorithm, limit, window: '1d', ...(algorithm === 'leaky-bucket' && { queue: limit - 1 }) }
  const stores: RedisStore[] = []
  const keyPrefix = `test:${randomUUID()}:`
  afterAll(() => Promise.all(stores.map((store) => store.close())))

  function open(): Limiter {
    const store = new RedisStore(client, { prefix: `${keyPrefix}sluice` })
    stores.push(store)
    return new Limiter({ store, name: 'l', timeoutMs: 30_000, onStoreError: 'deny', ...policy })
  }

  test('admits exactly its limit of 1000 concurrent requests on 4 connections B62', async () => {
    const limiters = Array.from({ length: 4 }, open)
    const decisions = await Promise.all(
      Array.from({ length: 1000 }, (_, i) => limiters[i % 4]?.consume({ key: 'k' })),
    )
    expect(decisions.filter((decision) => decision?.allowed)).toHaveLength(limit)
    expect(decisions.filter((decision) => decision?.degraded)).toEqual([])
  })

  test('takes over a key without expiry, and gives it one with its next charge B105', async () => {
    const { keySuffix } = resolvePolicy(policy, 'l')
    const key = `${keyPrefix}sluice:1:{left}:l:${keySuffix}`
    await client.set(key, 'left behind')
    expect((await open().consume({ key: 'left', cost: limit })).allowed).toBe(true)
    expect(await client.pttl(key)).toBeGreaterThan(0)
  })
})

describe('a process whose clock is an hour ahead', () => {
  test('is judged by the clock of the server, and disturbs nobody B75', async () => {
    const store = new RedisStore(client, { prefix: `test:${randomUUID()}` })
    const limiter = new Limiter({ store, limit: 2, window: '1d', algorithm: 'gcra', timeoutMs: 30_000 })
    const serverMs = async () => Number((await client.time())[0]) * 1000
    const before = await serverMs()
    const ahead = Date.now() + 3_600_000
    const clock = jest.spyOn(Date, 'now').mockReturnValue(ahead)
    const decision = await limiter.consume({ key: 'k' })
    clock.mockRestore()
    expect(decision.atMs).toBeGreaterThanOrEqual(before)
    expect(decision.atMs).toBeLessThan((await serverMs()) + 1000)
    expect(await limiter.consume({ key: 'k' })).toMatchObject({ allowed: true, remaining: 0 })
    await store.close()
  })
})

test.each<[string, () => Store]>([
  ['memory', () => new MemoryStore()],
  ['Redis', () => new RedisStore(client, { prefix: `test:${randomUUID()}` })],
])(
  'in %s an account has a quota for each of its spellings, or one where the key folds them B23',
  async (_, open) => {
    const store = open()
    const limiter = new Limiter({ store, algorithm: 'gcra', limit: 3, window: '1d', timeoutMs: 30_000 })
    const fold = (account: string): string => account.normalize('NFKC').replace(/\s/g, '').toLowerCase()
    const admitted = async (keys: string[]): Promise<number> => {
      const decisions = await Promise.all(keys.map((key) => limiter.consume({ key })))
      return decisions.filter(({ allowed }) => allowed).length
    }
    const spellings = [
      'Ren\u00e9@x.org',
      ' rene\u0301@x.org ',
      'ren\u00e9@x. org',
      'REN\u00c9\uff20\uff58.org',
    ]
    expect(await admitted(spellings)).toBe(4)
    expect(await admitted(spellings.map((account) => `folded:${fold(account)}`))).toBe(3)
    await store.close()
  },
)
