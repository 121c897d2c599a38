import type { AlgorithmDefinition } from '../algorithm.js'
import { type BucketRule, resolveBurst } from '../bucket.js'

/**
 * Whole tokens and a remainder in steps at `lastUs`, and the unit that the remainder was counted in
 * (see {@link BucketRule}).
 */
export interface TokenBucketState {
  readonly tokens: number
  readonly steps: number
  readonly lastUs: number
  readonly unit: number
}

/**
 * A bucket of `burst` tokens that refills continuously at limit / window.
 * Bound: burst + limit x T / window in any interval T.
 */
export const tokenBucket: AlgorithmDefinition<BucketRule, TokenBucketState> = {
  code: 'tb',
  options: ['burst'],
  resolve: resolveBurst,
  step(state, nowUs, cost, rule) {
    const { burst, stepsPerUnit, stepsPerUs, fullSteps, unit, windowUs } = rule
    let level = fullSteps
    let lastUs = nowUs
    if (state && state.lastUs <= nowUs + windowUs) {
      const steps = state.unit === unit ? state.steps : 0
      level = Math.min(state.tokens * stepsPerUnit + steps, fullSteps)
      lastUs = Math.max(state.lastUs, nowUs)
      const elapsedUs = lastUs - state.lastUs
      level = elapsedUs < (fullSteps - level) / stepsPerUs ? level + elapsedUs * stepsPerUs : fullSteps
    }
    const allowed = level >= cost * stepsPerUnit
    if (allowed) level -= cost * stepsPerUnit
    const remaining = Math.floor(level / stepsPerUnit)
    const waitUs = (steps: number): number =>
      steps > level ? lastUs - nowUs + Math.ceil((steps - level) / stepsPerUs) : 0
    return {
      allowed,
      remaining,
      retryUs: allowed ? 0 : cost > burst ? -1 : waitUs(cost * stepsPerUnit),
      replenishUs: remaining < burst ? waitUs((remaining + 1) * stepsPerUnit) : 0,
      resetUs: waitUs(fullSteps),
      delayUs: 0,
      next:
        allowed && cost > 0
          ? { tokens: remaining, steps: level - remaining * stepsPerUnit, lastUs, unit }
          : undefined,
    }
  },
}
