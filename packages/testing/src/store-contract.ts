import { randomUUID } from 'node:crypto'
import {
  type Algorithm,
  algorithmNames,
  type Check,
  type ClockUs,
  type Policy,
  type Refund,
  type ResolvedPolicy,
  resolvePolicy,
  type Store,
  type Verdict,
} from '@sluice/core'
import { numbersOf } from './verdict.js'

/** Makes a store, which counts by the clock that it is given where it can. It may hold other keys already. */
export type MakeStore = (nowUs: ClockUs) => Store | Promise<Store>

/** What a store can do beyond counting; a toggle that is false swaps the tests that need it for weaker ones. */
export interface StoreCapabilities {
  /**
   * Whether the store counts by the clock it is made with. False for one that asks a clock of its own, such as its
   * server's: its waits are then tested to be bounded, not to be exact. Default true.
   */
  clock?: boolean
}

/** On no edge of any window. */
const startUs = 1_800_057_612_345_678

const options = { timeoutMs: 10_000 }

/**
 * Defines the tests of what every store must do. Uses the globals of Jest, or of Vitest with `globals: true`.
 * @example
 * storeContract('MyStore', (nowUs) => new MyStore({ nowUs }))
 */
export function storeContract(
  name: string,
  makeStore: MakeStore,
  { clock = true }: StoreCapabilities = {},
): void {
  let nowUs: number
  let store: Store
  let prefix: string

  /** A policy that can take `limit` units at once, in a window so long that nothing comes back during a test. */
  function policyOf(algorithm: Algorithm, limit: number, changes: Partial<Policy> = {}): ResolvedPolicy {
    const size = algorithm === 'leaky-bucket' ? { queue: limit - 1 } : {}
    return resolvePolicy({ algorithm, limit, window: '400d', ...size, ...changes })
  }

  function check(key: string, policy: ResolvedPolicy, least = 1, most = least): Check {
    return { key: `1:{${prefix}}:${key}`, policy, least, most }
  }

  async function call(method: 'consume' | 'peek', checks: readonly Check[]): Promise<readonly Verdict[]> {
    const verdicts = (await store[method](checks, options)).map(numbersOf)
    const atUs = clock ? nowUs : verdicts[0]?.atUs
    if (verdicts.length !== checks.length || !verdicts.every((verdict) => isSound(verdict, atUs))) {
      throw new Error(`To ${checks.length} checks at ${nowUs} the store answers ${JSON.stringify(verdicts)}`)
    }
    return verdicts
  }

  const consume = (...checks: Check[]): Promise<readonly Verdict[]> => call('consume', checks)
  const peek = (...checks: Check[]): Promise<readonly Verdict[]> => call('peek', checks)

  async function consumeOne(...args: Parameters<typeof check>): Promise<Verdict> {
    return (await consume(check(...args)))[0] as Verdict
  }

  async function peekOne(...args: Parameters<typeof check>): Promise<Verdict> {
    return (await peek(check(...args)))[0] as Verdict
  }

  async function remaining(key: string, policy: ResolvedPolicy): Promise<number> {
    return (await peekOne(key, policy, 0)).remaining
  }

  /** What must be equal of two verdicts between which nothing was charged, but time may have passed. */
  function lasting(verdict: Verdict): Partial<Verdict> {
    const { allowed, granted, remaining } = verdict
    return clock ? verdict : { allowed, granted, remaining }
  }

  describe(name, () => {
    beforeEach(async () => {
      nowUs = startUs
      prefix = randomUUID()
      store = await makeStore(() => nowUs)
    })

    afterEach(() => store.close())

    describe.each(algorithmNames.map((algorithm) => [algorithm] as const))('%s', (algorithm) => {
      test('a charge takes its cost, and what remains is the largest cost that passes', async () => {
        const policy = policyOf(algorithm, 10)
        expect(await consumeOne('k', policy, 3)).toMatchObject({ allowed: true, granted: 3, remaining: 7 })
        expect(await consumeOne('k', policy, 8)).toMatchObject({ allowed: false, granted: 0, remaining: 7 })
        expect(await consumeOne('k', policy, 7)).toMatchObject({ allowed: true, granted: 7, remaining: 0 })
        expect(await consumeOne('k', policy, 1)).toMatchObject({ allowed: false, granted: 0, remaining: 0 })
      })

      test('of 1000 requests at once exactly the limit is admitted', async () => {
        const policy = policyOf(algorithm, 300)
        const verdicts = await Promise.all(Array.from({ length: 1000 }, () => consumeOne('k', policy)))
        expect(verdicts.filter(({ allowed }) => allowed)).toHaveLength(300)
        expect(verdicts.reduce((sum, { granted }) => sum + granted, 0)).toBe(300)
        expect(await remaining('k', policy)).toBe(0)
      })

      test('a denial changes nothing', async () => {
        const policy = policyOf(algorithm, 10)
        await consumeOne('k', policy, 7)
        const before = await peekOne('k', policy, 0)
        for (const cost of [4, 4, 1000]) {
          expect(await consumeOne('k', policy, cost)).toMatchObject({ allowed: false, granted: 0 })
        }
        expect(lasting(await peekOne('k', policy, 0))).toEqual(lasting(before))
      })

      test('peek answers what consume would, and charges nothing', async () => {
        const policy = policyOf(algorithm, 10)
        for (const cost of [0, 3, 8, 11, 2, 6, 5, 0, 1]) {
          const peeked = await peekOne('k', policy, cost)
          expect(lasting(await peekOne('k', policy, cost))).toEqual(lasting(peeked))
          expect(lasting(await consumeOne('k', policy, cost))).toEqual(lasting(peeked))
        }
      })

      test('cost 0 always passes and charges nothing', async () => {
        const policy = policyOf(algorithm, 2)
        const untouched = { allowed: true, granted: 0, remaining: 2, retryUs: 0, replenishUs: 0, resetUs: 0 }
        expect(await consumeOne('k', policy, 0)).toMatchObject(untouched)
        expect(await peekOne('k', policy, 0)).toMatchObject(untouched)
        await consumeOne('k', policy, 2)
        expect(await consumeOne('k', policy, 0)).toMatchObject({ allowed: true, granted: 0, remaining: 0 })
      })

      test('a cost above what can ever pass is denied for ever', async () => {
        const policy = policyOf(algorithm, 10)
        expect(await consumeOne('k', policy, 11)).toMatchObject({
          allowed: false,
          granted: 0,
          remaining: 10,
          retryUs: -1,
        })
      })

      test('limit 0 denies every cost for ever', async () => {
        const policy = policyOf(algorithm, 0, algorithm === 'leaky-bucket' ? { queue: 0 } : {})
        const denied = { allowed: false, granted: 0, remaining: 0, retryUs: -1 }
        expect(await consumeOne('k', policy, 1)).toMatchObject(denied)
        expect(await consumeOne('k', policy, 0)).toMatchObject(denied)
      })

      test('a smaller limit finds what was used under a larger one', async () => {
        await consumeOne('k', policyOf(algorithm, 10), 10)
        expect(await consumeOne('k', policyOf(algorithm, 5))).toMatchObject({ allowed: false, remaining: 0 })
      })

      if (clock) {
        /** Uses up a limit of 10 at two moments, and goes on a little. */
        async function exhaust(key: string): Promise<ResolvedPolicy> {
          const policy = policyOf(algorithm, 10, { window: '1m' })
          await consumeOne(key, policy, 4)
          nowUs += 7_000_001
          await consumeOne(key, policy, await remaining(key, policy))
          nowUs += 1234
          return policy
        }

        test.each([1, 5, 10])(
          'retryUs is exact: cost %d is denied 1 us before, and passes then',
          async (cost) => {
            const policy = await exhaust('k')
            const { allowed, retryUs } = await consumeOne('k', policy, cost)
            expect(allowed).toBe(false)
            nowUs += retryUs - 1
            expect(await consumeOne('k', policy, cost)).toMatchObject({
              allowed: false,
              granted: 0,
              retryUs: 1,
            })
            nowUs += 1
            expect(await consumeOne('k', policy, cost)).toMatchObject({
              allowed: true,
              granted: cost,
              retryUs: 0,
            })
          },
        )

        test('replenishUs and resetUs are exact: until more remains, and until all does', async () => {
          const policy = await exhaust('k')
          const { replenishUs, resetUs } = await peekOne('k', policy, 0)
          const wholeUs = nowUs + resetUs
          nowUs += replenishUs - 1
          expect(await remaining('k', policy)).toBe(0)
          nowUs += 1
          expect(await remaining('k', policy)).toBeGreaterThan(0)
          if (nowUs < wholeUs) {
            nowUs = wholeUs - 1
            expect(await peekOne('k', policy, 0)).toMatchObject({ resetUs: 1 })
            nowUs = wholeUs
          }
          expect(await peekOne('k', policy, 0)).toMatchObject({ remaining: 10, replenishUs: 0, resetUs: 0 })
        })

        test('what is only peeked at leaves no trace, however time goes on', async () => {
          const policy = policyOf(algorithm, 2, { window: '1m' })
          for (const passedUs of [0, 30e6, 40e6, 5e6, 25e6, 70e6, 1]) {
            nowUs += passedUs
            for (const cost of [1, 2]) await peekOne('watched', policy, cost)
            expect(await consumeOne('watched', policy)).toEqual(await consumeOne('alone', policy))
          }
        })
      } else {
        test('a denial names a wait of at most two windows', async () => {
          const policy = policyOf(algorithm, 10)
          await consumeOne('k', policy, 10)
          const { retryUs } = await consumeOne('k', policy)
          expect(retryUs).toBeGreaterThan(0)
          expect(retryUs).toBeLessThanOrEqual(2 * 400 * 86_400e6)
        })
      }
    })

    describe('several checks in one call', () => {
      const roomy = policyOf('fixed-window', 10)
      const tight = policyOf('gcra', 2)
      const trial = policyOf('token-bucket', 1, { shadow: true })

      test('are answered in their order', async () => {
        const checks = [3, 1, 4, 1, 5, 9, 2, 6].map((limit, i) =>
          check(`${i}`, policyOf('fixed-window', limit)),
        )
        const verdicts = await consume(...checks)
        expect(verdicts.map((verdict) => verdict.remaining)).toEqual([2, 0, 3, 0, 4, 8, 1, 5])
      })

      test.each([
        ['first', 0],
        ['last', 1],
      ])('are charged all or none: the one that denies comes %s', async (_, place) => {
        const checks = [check('roomy', roomy)]
        checks.splice(place, 0, check('tight', tight))
        for (const left of [1, 0]) {
          const verdicts = await consume(...checks)
          expect(verdicts.map((verdict) => verdict.granted)).toEqual([1, 1])
          expect(verdicts[place]?.remaining).toBe(left)
        }
        const verdicts = await consume(...checks)
        expect(verdicts[1 - place]).toMatchObject({ allowed: true, granted: 0, remaining: 8, retryUs: 0 })
        expect(verdicts[place]).toMatchObject({ allowed: false, granted: 0, remaining: 0 })
        expect(await remaining('roomy', roomy)).toBe(8)
      })

      test('are charged all or none, of 1000 calls at once', async () => {
        const wide = policyOf('sliding-window-counter', 500)
        const narrow = policyOf('token-bucket', 100)
        await Promise.all(
          Array.from({ length: 1000 }, () => consume(check('wide', wide), check('narrow', narrow))),
        )
        expect([await remaining('wide', wide), await remaining('narrow', narrow)]).toEqual([400, 0])
      })

      test('that only peek charge none', async () => {
        const checks = [check('roomy', roomy), check('tight', tight)]
        const peeked = await peek(...checks)
        expect(peeked).toMatchObject([
          { granted: 1, remaining: 9 },
          { granted: 1, remaining: 1 },
        ])
        expect((await consume(...checks)).map(lasting)).toEqual(peeked.map(lasting))
      })

      test('a shadow that admits is charged', async () => {
        expect(await consume(check('real', roomy), check('trial', trial))).toMatchObject([
          { allowed: true, granted: 1, remaining: 9 },
          { allowed: true, granted: 1, remaining: 0 },
        ])
      })

      test('a shadow that denies says so, is not charged, and refuses nothing', async () => {
        await consume(check('trial', trial))
        const verdicts = await consume(check('real', roomy), check('trial', trial))
        expect(verdicts).toMatchObject([
          { allowed: true, granted: 1, remaining: 9 },
          { allowed: false, granted: 0, remaining: 0 },
        ])
        expect(verdicts[1]?.retryUs).toBeGreaterThan(0)
        expect(await consumeOne('trial', trial)).toMatchObject({ allowed: false, granted: 0 })
      })

      test('a shadow is not charged for what another denies', async () => {
        await consumeOne('tight', tight, 2)
        expect(await consume(check('tight', tight), check('trial', trial))).toMatchObject([
          { allowed: false, granted: 0 },
          { allowed: true, granted: 0, remaining: 1 },
        ])
        expect(await remaining('trial', trial)).toBe(1)
      })
    })

    describe('a call for least to most units', () => {
      const five = policyOf('fixed-window', 5)
      const three = policyOf('gcra', 3)

      test.each([
        ['there are as many: all', 1, 4, { allowed: true, granted: 4, remaining: 1 }],
        ['there are fewer: those', 1, 8, { allowed: true, granted: 5, remaining: 0 }],
        ['there are just the least: those', 5, 8, { allowed: true, granted: 5, remaining: 0 }],
        ['there are fewer than the least: none', 6, 8, { allowed: false, granted: 0, remaining: 5 }],
      ])('is granted, where %s', async (_, least, most, expected) => {
        expect(await peekOne('five', five, least, most)).toMatchObject(expected)
        expect(await consumeOne('five', five, least, most)).toMatchObject(expected)
        expect(await remaining('five', five)).toBe(expected.remaining)
      })

      test('with several checks is granted the same of each: what the tightest has', async () => {
        const granted = await consume(check('five', five, 1, 8), check('three', three, 1, 8))
        expect(granted).toMatchObject([
          { granted: 3, remaining: 2 },
          { granted: 3, remaining: 0 },
        ])
        const denied = await consume(check('five', five, 1, 8), check('three', three, 1, 8))
        expect(denied).toMatchObject([
          { allowed: true, granted: 0, remaining: 2 },
          { allowed: false, granted: 0, remaining: 0 },
        ])
        expect(await remaining('five', five)).toBe(2)
      })
    })

    describe('keys', () => {
      const policy = policyOf('sliding-window-counter', 10)

      test('that look alike are counted apart', async () => {
        const keys = [
          'a',
          'A',
          'aa',
          'a:',
          ':a',
          'a:b',
          'a%3Ab',
          '%61',
          '{a}',
          '__proto__',
          'constructor',
          '0',
          '-0',
        ]
        for (const [i, key] of keys.entries()) await consumeOne(key, policy, 1 + (i % 5))
        for (const [i, key] of keys.entries())
          expect([key, await remaining(key, policy)]).toEqual([key, 9 - (i % 5)])
      })

      test('that are used at once are counted apart', async () => {
        const keys = Array.from({ length: 50 }, (_, i) => `k${i}`)
        const admitted = await Promise.all(
          keys.map(async (key) => {
            const verdicts = await Promise.all(Array.from({ length: 20 }, () => consumeOne(key, policy)))
            return verdicts.filter(({ allowed }) => allowed).length
          }),
        )
        expect(admitted).toEqual(keys.map(() => 10))
      })

      test('alone say what is counted, whatever object the policy is', async () => {
        await consumeOne('k', policy, 4)
        expect(await consumeOne('k', policyOf('sliding-window-counter', 10))).toMatchObject({ remaining: 5 })
      })
    })

    describe('refund and reset', () => {
      /** Charges a key, and says what a limiter would give back of it. */
      async function charge(key: string, policy: ResolvedPolicy, units: number): Promise<Refund> {
        const { granted, atUs, resetUs } = await consumeOne(key, policy, units)
        return { key: check(key, policy).key, policy, units: granted, atUs, resetUs }
      }

      const algorithms = algorithmNames.map((algorithm) => [algorithm] as const)

      test.each(algorithms)('a refund under %s makes the last charge undone', async (algorithm) => {
        const policy = policyOf(algorithm, 10)
        await charge('k', policy, 2)
        const before = await peekOne('k', policy, 0)
        const last = await charge('k', policy, 5)
        await store.refund([last], options)
        expect(lasting(await peekOne('k', policy, 0))).toEqual(lasting(before))
      })

      test.each(algorithms)('a refund under %s never makes more than all', async (algorithm) => {
        const policy = policyOf(algorithm, 10)
        const charged = await charge('k', policy, 2)
        await store.refund([charged], options)
        await store.refund([charged], options)
        await store.refund([{ ...charged, key: check('never used', policy).key }], options)
        expect(await remaining('k', policy)).toBe(10)
        expect(await remaining('never used', policy)).toBe(10)
        expect(await consumeOne('k', policy, 10)).toMatchObject({ allowed: true, remaining: 0 })
      })

      test('several refunds in one call are all given back', async () => {
        const one = policyOf('fixed-window', 10)
        const two = policyOf('gcra', 10)
        const refunds = [await charge('one', one, 3), await charge('two', two, 4)]
        await store.refund(refunds, options)
        expect([await remaining('one', one), await remaining('two', two)]).toEqual([10, 10])
      })

      test.each(algorithms)('a reset under %s forgets the keys it names, and no other', async (algorithm) => {
        const policy = policyOf(algorithm, 10)
        for (const key of ['a', 'b', 'c']) await consumeOne(key, policy, 6)
        await store.reset(
          [check('a', policy).key, check('b', policy).key, check('never used', policy).key],
          options,
        )
        expect(await remaining('a', policy)).toBe(10)
        expect(await remaining('b', policy)).toBe(10)
        expect(await remaining('c', policy)).toBe(4)
        expect(await consumeOne('a', policy, 10)).toMatchObject({ allowed: true, remaining: 0 })
      })
    })

    test('close may be called again', async () => {
      await store.close()
      await expect(store.close()).resolves.toBeUndefined()
    })
  })
}

/** Whether the numbers are whole and not negative, the wait fits the answer, and the time is this. */
function isSound(
  { allowed, retryUs, ...numbers }: Omit<Verdict, 'failed'>,
  atUs: number | undefined,
): boolean {
  return (
    numbers.atUs === atUs &&
    Object.values(numbers).every((number) => Number.isSafeInteger(number) && number >= 0) &&
    (allowed ? retryUs === 0 : retryUs === -1 || (Number.isSafeInteger(retryUs) && retryUs > 0))
  )
}
