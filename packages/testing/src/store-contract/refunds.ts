import { algorithmNames, type Refund, type ResolvedPolicy } from '@sluice/core'
import { options, type StoreBench } from './bench.js'

/** How a store gives back and forgets. */
export function testRefunds(bench: StoreBench): void {
  const { check, consumeOne, lasting, peekOne, policyOf, remaining } = bench

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
      await bench.store.refund([last], options)
      expect(lasting(await peekOne('k', policy, 0))).toEqual(lasting(before))
    })

    test.each(algorithms)('a refund under %s never makes more than all', async (algorithm) => {
      const policy = policyOf(algorithm, 10)
      const charged = await charge('k', policy, 2)
      await bench.store.refund([charged], options)
      await bench.store.refund([charged], options)
      await bench.store.refund([{ ...charged, key: check('never used', policy).key }], options)
      expect(await remaining('k', policy)).toBe(10)
      expect(await remaining('never used', policy)).toBe(10)
      expect(await consumeOne('k', policy, 10)).toMatchObject({ allowed: true, remaining: 0 })
    })

    test('several refunds in one call are all given back', async () => {
      const one = policyOf('fixed-window', 10)
      const two = policyOf('gcra', 10)
      const refunds = [await charge('one', one, 3), await charge('two', two, 4)]
      await bench.store.refund(refunds, options)
      expect([await remaining('one', one), await remaining('two', two)]).toEqual([10, 10])
    })

    test.each(algorithms)('a reset under %s forgets the keys it names, and no other', async (algorithm) => {
      const policy = policyOf(algorithm, 10)
      for (const key of ['a', 'b', 'c']) await consumeOne(key, policy, 6)
      await bench.store.reset(
        [check('a', policy).key, check('b', policy).key, check('never used', policy).key],
        options,
      )
      expect(await remaining('a', policy)).toBe(10)
      expect(await remaining('b', policy)).toBe(10)
      expect(await remaining('c', policy)).toBe(4)
      expect(await consumeOne('a', policy, 10)).toMatchObject({ allowed: true, remaining: 0 })
    })
  })
}
