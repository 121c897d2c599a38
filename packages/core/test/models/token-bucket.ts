import { exactRateOf, type Rate, rateOf, sameParts } from './bucket.js'
import { type Model, max, min, type Numbers } from './model.js'

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
    let bucket: Bucket | undefined
    for (const charge of history) {
      const { level, last } = refilled(bucket, charge.at, charge.numbers)
      bucket = { level: level - charge.cost * rate(charge.numbers).perToken, last, numbers: charge.numbers }
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
