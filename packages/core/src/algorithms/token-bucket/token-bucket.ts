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
    const { burst, stepsPerUnit, fullSteps } = rule
    const { held, lastUs } = refill(state, nowUs, rule)
    let level = held
    const allowed = level >= cost * stepsPerUnit
    if (allowed) level -= cost * stepsPerUnit
    const remaining = Math.floor(level / stepsPerUnit)
    const aheadUs = lastUs - nowUs
    return {
      allowed,
      remaining,
      retryUs: allowed ? 0 : cost > burst ? -1 : aheadUs + refillUs(cost * stepsPerUnit - level, rule),
      replenishUs: remaining < burst ? aheadUs + refillUs((remaining + 1) * stepsPerUnit - level, rule) : 0,
      resetUs: level < fullSteps ? aheadUs + refillUs(fullSteps - level, rule) : 0,
      delayUs: 0,
      next: allowed && cost > 0 ? stateOf(level, lastUs, rule) : undefined,
    }
  },
  leaseUs: () => Number.POSITIVE_INFINITY,
  packing: {
    pack({ tokens, steps, lastUs, unit }, { wide, narrow }, at) {
      wide[at + 1] = steps
      wide[at + 2] = lastUs
      narrow[2 * at] = tokens
      narrow[2 * at + 1] = unit
    },
    unpack: ({ wide, narrow }, at) => ({
      tokens: narrow[2 * at] as number,
      steps: wide[at + 1] as number,
      lastUs: wide[at + 2] as number,
      unit: narrow[2 * at + 1] as number,
    }),
  },
  refund(state, nowUs, { units, atUs, resetUs }, rule) {
    const { held, lastUs } = refill(state, nowUs, rule)
    // What of the charge was not refilled since: the oldest debt is refilled first.
    const owed = Math.min((atUs + resetUs - lastUs) * rule.stepsPerUs, units * rule.stepsPerUnit)
    if (owed <= 0 || held === rule.fullSteps) return undefined
    return stateOf(Math.min(held + owed, rule.fullSteps), lastUs, rule)
  },
}

/** The tokens that the bucket holds now, in steps; time never runs backwards in it. */
function refill(
  state: TokenBucketState | undefined,
  nowUs: number,
  { stepsPerUnit, stepsPerUs, fullSteps, unit, windowUs }: BucketRule,
): { held: number; lastUs: number } {
  if (!state || state.lastUs > nowUs + windowUs) return { held: fullSteps, lastUs: nowUs }
  const steps = state.unit === unit ? state.steps : 0
  const level = Math.min(state.tokens * stepsPerUnit + steps, fullSteps)
  const lastUs = Math.max(state.lastUs, nowUs)
  const elapsedUs = lastUs - state.lastUs
  const full = elapsedUs >= (fullSteps - level) / stepsPerUs
  return { held: full ? fullSteps : level + elapsedUs * stepsPerUs, lastUs }
}

/** How long so many steps take to refill. */
function refillUs(steps: number, { stepsPerUs }: BucketRule): number {
  return Math.ceil(steps / stepsPerUs)
}

function stateOf(level: number, lastUs: number, { stepsPerUnit, unit }: BucketRule): TokenBucketState {
  const tokens = Math.floor(level / stepsPerUnit)
  return { tokens, steps: level - tokens * stepsPerUnit, lastUs, unit }
}
