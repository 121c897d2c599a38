import fc from 'fast-check'
import { limits, shares, windowsMs } from '../../test/trace.js'
import { gcd, mulDiv } from './arithmetic.js'

describe('mulDiv', () => {
  const us = windowsMs.map((ms) => ms * 1000)

  test('equals floor(a * b / c) of BigInt for units times time by a window, on both sides of 2^53', () => {
    let outside = 0
    fc.assert(
      fc.property(limits, us, shares, (units, windowUs, share) => {
        const sinceUs = Math.floor(share * windowUs)
        if (units * sinceUs > 2 ** 53) outside += 1
        return (
          BigInt(mulDiv(units, sinceUs, windowUs)) === (BigInt(units) * BigInt(sinceUs)) / BigInt(windowUs)
        )
      }),
      { seed: 20_260_103, numRuns: 20_000 },
    )
    expect(outside).toBeGreaterThan(3000)
  })

  test('equals floor(a * b / c) of BigInt for units times a window by more units', () => {
    let outside = 0
    fc.assert(
      fc.property(limits, limits, us, (a, b, windowUs) => {
        const [fewer, more] = a < b ? [a, b] : [b, a]
        if (fewer * windowUs > 2 ** 53) outside += 1
        return BigInt(mulDiv(fewer, windowUs, more)) === (BigInt(fewer) * BigInt(windowUs)) / BigInt(more)
      }),
      { seed: 20_260_104, numRuns: 20_000 },
    )
    expect(outside).toBeGreaterThan(1000)
  })

  const longest = 400 * 86_400 * 1e6
  test.each<[number, number, number, number]>([
    [1e9, longest, longest, 1e9],
    [1e9, longest - 1, longest, 999_999_999],
    [1e9 - 1, longest, 1e9, longest - 34_560],
    [0, longest, 1, 0],
    [2 ** 35 - 1, longest, longest, 2 ** 35 - 1],
  ])('of %d x %d / %d is %d', (a, b, c, expected) => {
    expect(mulDiv(a, b, c)).toBe(expected)
  })
})

describe('gcd', () => {
  test('is the largest number that divides both, as Euclid has it', () => {
    fc.assert(
      fc.property(limits, windowsMs, limits, (a, ms, common) => {
        const b = ms * 1000
        const divisor = gcd(a, b)
        const factor = Math.min(common, 1000)
        const divides = a % divisor === 0 && b % divisor === 0
        return (
          divides && gcd(a / divisor, b / divisor) === 1 && gcd(a * factor, b * factor) === divisor * factor
        )
      }),
      { seed: 20_260_105, numRuns: 5000 },
    )
  })
})
