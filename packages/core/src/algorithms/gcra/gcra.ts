import type { AlgorithmDefinition } from '../algorithm.js'
import { type BucketRule, resolveBurst } from '../bucket.js'

/**
 * The theoretical arrival time: whole microseconds, and a remainder in steps with the unit it was counted in; and
 * `longUs` of the policy that stored it (see {@link BucketRule}).
 */
export interface GcraState {
  readonly tatUs: number
  readonly steps: number
  readonly unit: number
  readonly longUs: number
}

/**
 * Generic cell rate algorithm (ITU-T I.371, virtual scheduling): keeps only the time at which the debt is paid.
 * Admits exactly what the token bucket with the same numbers admits.
 * Bound: burst + limit x T / window in any interval T.
 */
export const gcra: AlgorithmDefinition<BucketRule, GcraState> = {
  code: 'gc',
  options: ['burst'],
  resolve: resolveBurst,
  step(state, nowUs, cost, rule) {
    const { burst, stepsPerUnit, stepsPerUs, fullSteps, unit, windowUs, longUs } = rule
    let aheadUs = 0
    let steps = 0
    if (state) {
      // A remainder in another unit is rounded up: read in the wrong unit it could admit too much.
      const known = state.unit === unit || state.steps === 0
      const us = state.tatUs - nowUs + (known ? 0 : 1)
      const rest = known ? state.steps : 0
      const overUs = us - windowUs
      // A debt beyond what this policy could store may be that of a larger burst, and stands.
      if (us >= 0 && (overUs * stepsPerUs + rest <= fullSteps || overUs < state.longUs)) {
        aheadUs = us
        steps = rest
      }
    }
    let debt = Math.min(aheadUs * stepsPerUs + steps, fullSteps)
    const allowed = debt + cost * stepsPerUnit <= fullSteps
    if (allowed && cost > 0) {
      debt += cost * stepsPerUnit
      steps = debt % stepsPerUs
      aheadUs = (debt - steps) / stepsPerUs
    }
    const remaining = Math.floor((fullSteps - debt) / stepsPerUnit)
    const waitUs = (units: number): number =>
      aheadUs - Math.floor((fullSteps - units * stepsPerUnit - steps) / stepsPerUs)
    return {
      allowed,
      remaining,
      retryUs: allowed ? 0 : cost > burst ? -1 : waitUs(cost),
      replenishUs: remaining < burst ? waitUs(remaining + 1) : 0,
      resetUs: steps > 0 ? aheadUs + 1 : aheadUs,
      delayUs: 0,
      next: allowed && cost > 0 ? { tatUs: nowUs + aheadUs, steps, unit, longUs } : undefined,
    }
  },
}
