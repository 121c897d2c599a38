import { checkWhole } from '../../check-whole.js'
import { badOption } from '../../errors.js'
import type { AlgorithmDefinition } from '../algorithm.js'
import { mulDiv } from '../arithmetic.js'
import { type BucketRule, resolveBucket } from '../bucket.js'
import { type DebtState, packedDebt, refundDebt, stepDebt } from '../debt.js'

/** The options of `leaky-bucket`; at most one of them. */
export interface LeakyBucketOptions {
  /** Places in the queue beyond the request that is departing, 0 to 10^9 - 1. Only `leaky-bucket`. */
  queue?: number
  /**
   * The longest wait in milliseconds, 0 to 60,000, from which the number of places follows. Default 5000. Only
   * `leaky-bucket`.
   */
  maxWaitMs?: number
}

const maxQueue = 1e9 - 1

/**
 * A first-in, first-out queue that smooths: accepted requests depart at least window / limit apart, each after its
 * `delayMs`, and a full queue denies. A request of cost c takes c departures and leaves with the last. The state is
 * the first free departure.
 * Bound: scheduled departures are at least window / limit apart; at most queue + 1 + limit x T / window are accepted
 * in any interval T.
 */
export const leakyBucket: AlgorithmDefinition<BucketRule, DebtState> = {
  code: 'lb',
  options: ['queue', 'maxWaitMs'],
  resolve(numbers) {
    const { queue, maxWaitMs = 5000 } = numbers.options
    if (queue !== undefined && numbers.options.maxWaitMs !== undefined) {
      throw badOption('queue', queue, 'either `queue` or `maxWaitMs`, not both')
    }
    const waitMs = checkWhole('maxWaitMs', maxWaitMs, 0, 60_000, 'whole milliseconds')
    const places =
      queue === undefined
        ? Math.min(maxQueue, mulDiv(numbers.limit, waitMs * 1000, numbers.windowUs))
        : checkWhole('queue', queue, 0, maxQueue)
    const rule = resolveBucket(numbers, places + 1, 'queue')
    return { ...rule, longestDelayUs: Math.ceil((places * rule.stepsPerUnit) / rule.stepsPerUs) }
  },
  step(state, nowUs, cost, rule) {
    const answer = stepDebt(state, nowUs, cost, rule)
    if (!answer.next) return answer
    // It leaves with the last of the departures that it takes.
    const { next, allowed, remaining, retryUs, replenishUs, resetUs } = answer
    const delayUs = next.paidUs - nowUs + Math.ceil((next.steps - rule.stepsPerUnit) / rule.stepsPerUs)
    return { allowed, remaining, retryUs, replenishUs, resetUs, delayUs, next }
  },
  refund: (state, nowUs, charge, rule) => refundDebt(state, nowUs, charge, rule, true),
  packing: packedDebt,
}
