import { algorithmNames, type ResolvedPolicy } from '@sluice/core'
import type { StoreBench } from './bench.js'

/** What a store does with one check, under each algorithm. */
export function testAlgorithms(bench: StoreBench): void {
  const { consumeOne, lasting, peekOne, policyOf, remaining } = bench

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

    if (bench.clock) {
      /** Uses up a limit of 10 at two moments, and goes on a little. */
      async function exhaust(key: string): Promise<ResolvedPolicy> {
        const policy = policyOf(algorithm, 10, { window: '1m' })
        await consumeOne(key, policy, 4)
        bench.nowUs += 7_000_001
        await consumeOne(key, policy, await remaining(key, policy))
        bench.nowUs += 1234
        return policy
      }

      test.each([1, 5, 10])(
        'retryUs is exact: cost %d is denied 1 us before, and passes then',
        async (cost) => {
          const policy = await exhaust('k')
          const { allowed, retryUs } = await consumeOne('k', policy, cost)
          expect(allowed).toBe(false)
          bench.nowUs += retryUs - 1
          expect(await consumeOne('k', policy, cost)).toMatchObject({
            allowed: false,
            granted: 0,
            retryUs: 1,
          })
          bench.nowUs += 1
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
        const wholeUs = bench.nowUs + resetUs
        bench.nowUs += replenishUs - 1
        expect(await remaining('k', policy)).toBe(0)
        bench.nowUs += 1
        expect(await remaining('k', policy)).toBeGreaterThan(0)
        if (bench.nowUs < wholeUs) {
          bench.nowUs = wholeUs - 1
          expect(await peekOne('k', policy, 0)).toMatchObject({ resetUs: 1 })
          bench.nowUs = wholeUs
        }
        expect(await peekOne('k', policy, 0)).toMatchObject({ remaining: 10, replenishUs: 0, resetUs: 0 })
      })

      test('what is only peeked at leaves no trace, however time goes on', async () => {
        const policy = policyOf(algorithm, 2, { window: '1m' })
        for (const passedUs of [0, 30e6, 40e6, 5e6, 25e6, 70e6, 1]) {
          bench.nowUs += passedUs
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
}
