import { exactRateOf, type Rate, rateOf, sameParts } from './bucket.js'
import { type Charge, ceilDiv, type History, type Model, max, min, type Numbers } from './model.js'

interface Arrival {
  /** The theoretical arrival time in parts of a microsecond, as many as `rate(numbers).perUs`. */
  readonly tat: bigint
  readonly numbers: Numbers
  /** The numbers that charged last, whose burst the debt may be of. */
  readonly writer: Numbers
}

/**
 * A debt in time, paid as time passes: what is left of it at a moment, in parts of a microsecond.
 * @param lastOnly whether only the charge that nobody came after can be given back
 */
export function debtOf(
  history: History,
  at: bigint,
  numbers: Numbers,
  rate: (numbers: Numbers) => Rate,
  lastOnly = false,
): bigint {
  const fullUs = (numbers: Numbers): bigint => (numbers.burst * rate(numbers).perToken) / rate(numbers).perUs

  const tatAt = (arrival: Arrival | undefined, at: bigint, numbers: Numbers): bigint => {
    const { perToken, perUs } = rate(numbers)
    if (!arrival) return at * perUs
    const old = rate(arrival.numbers).perUs
    const tat = sameParts(arrival.numbers, numbers) ? arrival.tat : ceilDiv(arrival.tat, old) * perUs
    // More than a window beyond what the policy could store, or the one that did, where that is beyond a window.
    const limitUs = at + numbers.windowUs
    const writerUs = fullUs(arrival.writer)
    const writer = writerUs > arrival.writer.windowUs && tat / perUs < limitUs + writerUs
    if (tat > limitUs * perUs + numbers.burst * perToken && !writer) return at * perUs
    return max(tat, at * perUs)
  }

  /** When a charge would have been paid, in whole microseconds. */
  const paidAt = new Map<Charge, bigint>()
  let arrival: Arrival | undefined
  for (const event of history) {
    const { numbers } = 'of' in event ? event.of : event
    const { perToken, perUs } = rate(numbers)
    const tat = tatAt(arrival, event.at, numbers)
    if ('of' in event) {
      // Of the charge is given back what it still owes, the oldest debt first.
      const paid = paidAt.get(event.of) as bigint
      const now = event.at * perUs
      if (!arrival || paid <= event.at || tat === now || (lastOnly && paid !== ceilDiv(tat, perUs))) continue
      const owed = min(paid * perUs - now, event.units * perToken)
      arrival = { tat: max(now, tat - owed), numbers, writer: arrival.writer }
    } else {
      arrival = { tat: tat + event.cost * perToken, numbers, writer: numbers }
      paidAt.set(event, ceilDiv(arrival.tat, perUs))
    }
  }
  return tatAt(arrival, at, numbers) - at * rate(numbers).perUs
}

function modelAt(rate: (numbers: Numbers) => Rate): Model {
  return (history, at, numbers) => {
    const { perToken } = rate(numbers)
    const debt = debtOf(history, at, numbers, rate)
    return { remaining: max(0n, (numbers.burst * perToken - debt) / perToken), whole: debt === 0n }
  }
}

/** Virtual scheduling: a request passes if its debt fits the burst. */
export const gcraModel: Model = modelAt(rateOf)

/** The same without any rounding of the rate; for histories of one policy. */
export const exactGcraModel: Model = modelAt(exactRateOf)
