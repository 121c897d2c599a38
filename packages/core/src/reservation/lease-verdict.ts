import type { Verdict } from '../store.js'

/** What is told of units that were granted by this verdict some time ago, to one who spends them. */
export function spentVerdict(
  { allowed, granted, retryUs, replenishUs, resetUs, atUs }: Verdict,
  cost: number,
  remaining: number,
  elapsedUs: number,
): Verdict {
  return {
    source: 'lease',
    allowed,
    granted: granted > 0 ? cost : 0,
    remaining,
    retryUs: retryUs > 0 ? Math.max(1, retryUs - elapsedUs) : retryUs,
    replenishUs: replenishUs > 0 ? Math.max(1, replenishUs - elapsedUs) : 0,
    resetUs: Math.max(0, resetUs - elapsedUs),
    delayUs: 0,
    atUs: atUs + elapsedUs,
  }
}

/**
 * What is told to one for whom too little was left when this verdict was given to others: the wait is exact for one
 * unit that is lacking, and the least that it may be for more.
 */
export function lackingVerdict(verdict: Verdict): Verdict {
  return { ...verdict, allowed: false, granted: 0, retryUs: Math.max(1, verdict.replenishUs) }
}
