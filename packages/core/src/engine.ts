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
  let lease = Number.POSITIVE_INFINITY
  const trials = checks.map((check, i) => {
    const { policy, least, most } = check
    let units = most
    let answer = run(check, states[i], nowUs, most)
    if (!answer.allowed && least < most && answer.remaining >= least) {
      units = answer.remaining
      answer = run(check, states[i], nowUs, units)
      if (!policy.shadow) lease = Math.min(lease, units)
    }
    if (!answer.allowed && !policy.shadow) admitted = false
    return { units, answer }
  })
  return trials.map(({ units, answer }, i) => {
    const granted = answer.allowed && admitted ? Math.min(units, lease) : 0
    const { allowed, remaining, retryUs, replenishUs, resetUs, delayUs, next } =
      answer.allowed && granted < units ? run(checks[i] as Check, states[i], nowUs, granted) : answer
    return { allowed, granted, remaining, retryUs, replenishUs, resetUs, delayUs, atUs: nowUs, next }
  })
}

function run({ policy }: Check, state: unknown, nowUs: number, cost: number): Step {
  return policy.limit === 0 ? refusesAll : policy.step(state, nowUs, cost, policy.rule)
}
