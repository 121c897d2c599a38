import type { StoreBench } from './bench.js'

/** What a store does with several checks in one call, and with a lease. */
export function testCalls(bench: StoreBench): void {
  const { check, consume, consumeOne, lasting, peek, peekOne, policyOf, remaining } = bench

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

    test('is denied until the least could pass', async () => {
      await consumeOne('three', three, 3)
      const { retryUs } = await consumeOne('three', three)
      const denied = await consumeOne('three', three, 1, 3)
      expect(denied).toMatchObject({ allowed: false, granted: 0 })
      expect(denied.retryUs).toBeLessThanOrEqual(retryUs)
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
}
