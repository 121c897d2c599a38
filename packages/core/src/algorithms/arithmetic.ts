/** Above this, doubles no longer hold every whole number: the line between exact and rounded arithmetic. */
export const MAX_EXACT = 2 ** 53

/** Greatest common divisor of two positive whole numbers. */
export function gcd(a: number, b: number): number {
  while (b > 0) [a, b] = [b, a % b]
  return a
}

/**
 * floor(a * b / c) without losing a digit, where a < 2^35, b and c are at most 400 days in microseconds, and the result
 * is below 2^53: long division in base 128, used only where the product passes 2^53.
 */
export function mulDiv(a: number, b: number, c: number): number {
  if (a * b < MAX_EXACT) return Math.floor((a * b) / c)
  let quotient = 0
  let rest = 0
  for (let place = 2 ** 28; place >= 1; place /= 128) {
    const digit = Math.floor(a / place) % 128
    const part = rest * 128 + digit * b
    quotient = quotient * 128 + Math.floor(part / c)
    rest = part % c
  }
  return quotient
}
