import type { AlgorithmDefinition } from '../algorithm.js'
import { type BucketRule, resolveBurst } from '../bucket.js'

/**
 * The theoretical arrival time: whole microseconds, and a remainder in steps with the unit it was counted in
 * (see {@link BucketRule}).
 */
export interface GcraState {
  readonly tatUs: number
  readonly steps: number
  readonly unit: number
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
    const { burst, stepsPerUnit, stepsPerUs, fullSteps, unit, windowUs } = rule
    let debt = 0
    if (state) {
      // A remainder in another unit is rounded up: read in the wrong unit it could admit too much.
      const known = state.unit === unit || state.steps === 0
      const aheadUs = state.tatUs - nowUs + (known ? 0 : 1)
      if (aheadUs <= fullSteps / stepsPerUs + windowUs) {
        debt = Math.min(Math.max(0, aheadUs * stepsPerUs + (known ? state.steps : 0)), fullSteps)
      }
    }
    const allowed = debt + cost * stepsPerUnit <= fullSteps
    if (allowed) debt += cost * stepsPerUnit
    const remaining = Math.floor((fullSteps - debt) / stepsPerUnit)
    const waitUs = (units: number): number => Math.ceil((debt + units * stepsPerUnit - fullSteps) / stepsPerUs)
    const next = (): GcraState => {
      const steps = debt % stepsPerUs
      return { tatUs: nowUs + (debt - steps) / stepsPerUs, steps, unit }
    }
    return {
      allowed,
      remaining,
      retryUs: allowed ? 0 : cost > burst ? -1 : waitUs(cost),
      replenishUs: remaining < burst ? waitUs(remaining + 1) : 0,
      resetUs: Math.ceil(debt / stepsPerUs),
      delayUs: 0,
      next: allowed && cost > 0 ? next() : undefined,
    }
  },
}
