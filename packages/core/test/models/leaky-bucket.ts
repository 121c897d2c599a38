import { exactRateOf, type Rate, rateOf } from './bucket.js'
import { debtOf } from './gcra.js'
import { ceilDiv, floorDiv, type Model, max, type Numbers } from './model.js'

function modelAt(rate: (numbers: Numbers) => Rate): Model {
  return (history, at, numbers) => {
    const { perToken: apart, perUs } = rate(numbers)
    const queue = numbers.burst - 1n
    /** From now to the first free departure. */
    const slot = debtOf(history, at, numbers, rate, true)
    return {
      // Cost c leaves with the last of c departures, which must be within the wait of the last place.
      remaining: max(0n, floorDiv(queue * apart - slot, apart) + 1n),
      whole: slot === 0n,
      delay: (cost) => ceilDiv(slot + (cost - 1n) * apart, perUs),
    }
  }
}

/** Departures in the order of arrival, a fixed time apart. */
export const leakyBucketModel: Model = modelAt(rateOf)

/** The same without any rounding of the rate; for histories of one policy. */
export const exactLeakyBucketModel: Model = modelAt(exactRateOf)
