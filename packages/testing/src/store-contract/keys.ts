import type { StoreBench } from './bench.js'

/** How a store tells keys apart. */
export function testKeys(bench: StoreBench): void {
  const { consumeOne, policyOf, remaining } = bench

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
}
