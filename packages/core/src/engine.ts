import type { Step } from './algorithms/algorithm.js'
import type { Check, Verdict } from './store.js'

/** A verdict, and the state to store under the check's key if the call charges; undefined where nothing changes. */
export interface Outcome extends Verdict {
  readonly next: unknown
}

const refusesAll: Step = {
  allowed: false,
  remaining: 0,
  retryUs: -1,
  replenishUs: 0,
  resetUs: 0,
  delayUs: 0,
  next: undefined,
}

/**
 * Decides one group of checks, all or nothing: what `engine.lua` does in Redis, for stores that run TypeScript.
 * @param states the stored state of each check's key, undefined for a key that was never used
 */
export function decide(checks: readonly Check[], states: readonly unknown[], nowUs: number): Outcome[] {
  let admitted = true
  let most = Number.POSITIVE_INFINITY
  const outcomes = new Array<Outcome>(checks.length)
  for (let i = 0; i < checks.length; i++) {
    const check = checks[i] as Check
    const { shadow } = check.policy
    let outcome = run(check, states[i], nowUs, check.most)
    if (!outcome.allowed && check.least < check.most) {
      const units = Math.max(check.least, outcome.remaining)
      outcome = run(check, states[i], nowUs, units)
      if (outcome.allowed && !shadow) most = Math.min(most, units)
    }
    if (!outcome.allowed && !shadow) admitted = false
    outcomes[i] = outcome
  }
  if (!admitted) most = 0
  for (let i = 0; i < checks.length; i++) {
    if ((outcomes[i] as Outcome).granted > most) outcomes[i] = run(checks[i] as Check, states[i], nowUs, most)
  }
  return outcomes
}

function run({ policy }: Check, state: unknown, nowUs: number, cost: number): Outcome {
  const step = policy.limit === 0 ? refusesAll : policy.step(state, nowUs, cost, policy.rule)
  const { allowed, remaining, retryUs, replenishUs, resetUs, delayUs, next } = step
  const granted = allowed ? cost : 0
  return { allowed, granted, remaining, retryUs, replenishUs, resetUs, delayUs, atUs: nowUs, next }
}
