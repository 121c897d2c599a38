import type { AlgorithmDefinition } from '../algorithm.js'
import { type BucketRule, resolveBurst } from '../bucket.js'
import { type DebtState, packedDebt, refundDebt, stepDebt } from '../debt.js'

/**
 * Generic cell rate algorithm (ITU-T I.371, virtual scheduling): keeps only the time at which the debt is paid, the
 * theoretical arrival time. Admits exactly what the token bucket with the same numbers admits.
 * Bound: burst + limit x T / window in any interval T.
 */
export const gcra: AlgorithmDefinition<BucketRule, DebtState> = {
  code: 'gc',
  options: ['burst'],
  resolve: resolveBurst,
  step: stepDebt,
  refund: refundDebt,
  leaseUs: () => Number.POSITIVE_INFINITY,
  packing: packedDebt,
}
