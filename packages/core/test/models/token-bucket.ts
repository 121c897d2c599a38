import { exactRateOf, type Rate, rateOf, sameParts } from './bucket.js'
import { type Charge, ceilDiv, type Model, max, min, type Numbers } from './model.js'

interface Bucket {
  readonly level: bigint
  readonly last: bigint
  readonly numbers: Numbers
}

function modelAt(rate: (numbers: Numbers) => Rate): Model {
  const refilled = (bucket: Bucket | undefined, at: bigint, numbers: Numbers): Bucket => {
    const { perToken, perUs } = rate(numbers)
    const full = numbers.burst * perToken
    if (!bucket || bucket.last > at + numbers.windowUs) return { level: full, last: at, numbers }
    const old = rate(bucket.numbers).perToken
    const kept = sameParts(bucket.numbers, numbers) ? bucket.level : (bucket.level / old) * perToken
    const level = min(full, min(full, kept) + max(0n, at - bucket.last) * perUs)
    return { level, last: max(bucket.last, at), numbers }
  }
  return (history, at, numbers) => {
    /** When the bucket would have been full again after a charge, in whole microseconds. */
    const fullAt = new Map<Charge, bigint>()
    let bucket: Bucket | undefined
    for (const event of history) {
      const { numbers } = 'of' in event ? event.of : event
      const { perToken, perUs } = rate(numbers)
      const full = numbers.burst * perToken
      const now = refilled(bucket, event.at, numbers)
      if ('of' in event) {
        // Of the charge is given back what was not refilled since, the oldest debt first.
        const left = (fullAt.get(event.of) as bigint) - now.last
        if (left <= 0n || now.level === full) continue
        bucket = { ...now, level: min(full, now.level + min(left * perUs, event.units * perToken)) }
      } else {
        bucket = { ...now, level: now.level - event.cost * perToken }
        fullAt.set(event, now.last + ceilDiv(full - bucket.level, perUs))
      }
    }
    const { level } = refilled(bucket, at, numbers)
    const { perToken } = rate(numbers)
    return { remaining: level / perToken, whole: level === numbers.burst * perToken }
  }
}

/** Tokens, refilled continuously. */
export const tokenBucketModel: Model = modelAt(rateOf)

/** The same without any rounding of the rate; for histories of one policy. */
export const exactTokenBucketModel: Model = modelAt(exactRateOf)
