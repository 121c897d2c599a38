import type { Verdict } from '@sluice/core'

/** The verdict alone, without what a store may carry beside it. */
export function numbersOf(verdict: Verdict): Omit<Verdict, 'failed' | 'source'> {
  const { allowed, granted, remaining, retryUs, replenishUs, resetUs, delayUs, atUs } = verdict
  return { allowed, granted, remaining, retryUs, replenishUs, resetUs, delayUs, atUs }
}
