import { ceilDiv, type Numbers } from './model.js'

/** How a bucket counts: a token is `perToken` parts, and `perUs` parts flow in each microsecond. */
export interface Rate {
  readonly perToken: bigint
  readonly perUs: bigint
}

function gcd(a: bigint, b: bigint): bigint {
  return b === 0n ? a : gcd(b, a % b)
}

/** Whether the numbers are beyond the exact region, where a token takes a whole number of microseconds. */
export function isRounded({ limit, windowUs, burst }: Numbers): boolean {
  return (burst + 1n) * (windowUs / gcd(limit, windowUs)) > 2n ** 53n
}

const rates = new WeakMap<Numbers, Rate>()

/** The rate that a policy works at. */
export function rateOf(numbers: Numbers): Rate {
  let rate = rates.get(numbers)
  if (!rate) {
    const { limit, windowUs } = numbers
    rate = isRounded(numbers) ? { perToken: ceilDiv(windowUs, limit), perUs: 1n } : exactRateOf(numbers)
    rates.set(numbers, rate)
  }
  return rate
}

/** The rate that a policy asks for. */
export function exactRateOf({ limit, windowUs }: Numbers): Rate {
  return { perToken: windowUs, perUs: limit }
}

/** Whether parts of a token mean the same under both numbers. */
export function sameParts(a: Numbers, b: Numbers): boolean {
  return a === b || (a.limit === b.limit && isRounded(a) === isRounded(b))
}
