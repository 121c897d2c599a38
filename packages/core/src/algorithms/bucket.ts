import { checkWhole } from '../check-whole.js'
import { badOption } from '../errors.js'
import type { PolicyNumbers, Rule } from './algorithm.js'
import { gcd, MAX_EXACT } from './arithmetic.js'

/** The option of the algorithms that refill continuously: `token-bucket` and `gcra`. */
export interface BucketOptions {
  /** Units that may pass at once: whole, 1 to 10^9. Default: the limit. Only `token-bucket` and `gcra`. */
  burst?: number
}

/**
 * Constants of a bucket that refills continuously. Time and units meet in steps: one unit is `stepsPerUnit` steps and
 * one microsecond is `stepsPerUs` of them, so that a rate of `limit` per window is whole on both sides.
 */
export interface BucketRule extends Rule {
  readonly stepsPerUnit: number
  readonly stepsPerUs: number
  /** `burst` in steps. */
  readonly fullSteps: number
  /** Names the step that a stored remainder was counted in: the limit, plus 2^31 where the step is rounded. */
  readonly unit: number
  readonly windowUs: number
  /** How long the bucket takes to fill, in whole microseconds, where that is longer than the window; else 0. */
  readonly longUs: number
}

/** The longest a bucket may take to fill, and a block to last, in microseconds. */
export const CENTURY_US = 100 * 365.25 * 86_400 * 1e6

/** Resolves the numbers of a bucket; `burst` is checked by the caller. */
export function resolveBucket(numbers: PolicyNumbers, burst: number, option: string): BucketRule {
  const { limit, windowUs } = numbers
  if (burst * windowUs > CENTURY_US * limit) {
    throw badOption(option, burst, 'a size that refills within 100 years (size x window / limit)')
  }
  const divisor = gcd(limit, windowUs)
  let stepsPerUnit = windowUs / divisor
  let stepsPerUs = limit / divisor
  let unit = limit
  if ((burst + 1) * stepsPerUnit > MAX_EXACT) {
    // Past 2^53 the emission interval is rounded up to whole microseconds: slower by under 1 us a unit, never faster.
    stepsPerUnit = Math.ceil(windowUs / limit)
    stepsPerUs = 1
    unit += 2 ** 31
  }
  const fullSteps = burst * stepsPerUnit
  const fullUs = Math.floor(fullSteps / stepsPerUs)
  const longUs = fullUs > windowUs ? fullUs : 0
  const wire = [stepsPerUnit, stepsPerUs, unit, longUs]
  return { burst, stepsPerUnit, stepsPerUs, fullSteps, unit, windowUs, longUs, wire }
}

/** Resolves a policy with the option `burst`. */
export function resolveBurst(numbers: PolicyNumbers): BucketRule {
  const { burst = numbers.limit } = numbers.options
  return resolveBucket(numbers, checkWhole('burst', burst, 1, 1e9), 'burst')
}
