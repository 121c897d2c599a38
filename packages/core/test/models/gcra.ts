import { exactRateOf, type Rate, rateOf, sameParts } from './bucket.js'
import { ceilDiv, type Model, max, type Numbers } from './model.js'

interface Arrival {
  /** The theoretical arrival time in parts of a microsecond, as many as `rate(numbers).perUs`. */
  readonly tat: bigint
  readonly numbers: Numbers
}

function modelAt(rate: (numbers: Numbers) => Rate): Model {
  const fullUs = (numbers: Numbers): bigint => (numbers.burst * rate(numbers).perToken) / rate(numbers).perUs

  const tatAt = (arrival: Arrival | undefined, at: bigint, numbers: Numbers): bigint => {
    const { perToken, perUs } = rate(numbers)
    if (!arrival) return at * perUs
    const old = rate(arrival.numbers).perUs
    const tat = sameParts(arrival.numbers, numbers) ? arrival.tat : ceilDiv(arrival.tat, old) * perUs
    // More than a window beyond what the policy could store, or the one that did, where that is beyond a window.
    const limitUs = at + numbers.windowUs
    const writerUs = fullUs(arrival.numbers)
    const writer = writerUs > numbers.windowUs && tat / perUs < limitUs + writerUs
    if (tat > limitUs * perUs + numbers.burst * perToken && !writer) return at * perUs
    return max(tat, at * perUs)
  }

  return (history, at, numbers) => {
    let arrival: Arrival | undefined
    for (const charge of history) {
      const tat = tatAt(arrival, charge.at, charge.numbers)
      arrival = { tat: tat + charge.cost * rate(charge.numbers).perToken, numbers: charge.numbers }
    }
    const { perToken, perUs } = rate(numbers)
    const debt = tatAt(arrival, at, numbers) - at * perUs
    return { remaining: max(0n, (numbers.burst * perToken - debt) / perToken), whole: debt === 0n }
  }
}

/** A debt in time, paid as time passes. */
export const gcraModel: Model = modelAt(rateOf)

/** The same without any rounding of the rate; for histories of one policy. */
export const exactGcraModel: Model = modelAt(exactRateOf)
