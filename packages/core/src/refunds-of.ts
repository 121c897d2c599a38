import type { Check, Refund, Verdict } from './store.js'

/**
 * How to give charges back.
 * @param unitsOf how many units of a check's charge; those without any are left out
 */
export function refundsOf(
  checks: readonly Check[],
  verdicts: readonly Verdict[],
  unitsOf: (granted: number, check: Check) => number,
): Refund[] {
  const refunds: Refund[] = []
  for (const [i, { granted, atUs, resetUs }] of verdicts.entries()) {
    const check = checks[i] as Check
    const units = unitsOf(granted, check)
    if (units > 0) refunds.push({ key: check.key, policy: check.policy, units, atUs, resetUs })
  }
  return refunds
}
