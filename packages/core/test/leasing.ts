import type { LeaseTerms } from '../src/reservation/lease-terms.js'
import type { Reservation } from '../src/reservation/reservation.js'
import type { Check, Verdict } from '../src/store.js'

/** The terms of one process alone. */
export const terms: LeaseTerms = { max: 50, ttlMs: 5000, nodes: 1 }

/** Lets jest's fake timers run. */
export const pass = (ms: number): Promise<void> => jest.advanceTimersByTimeAsync(ms)

/** Decides one request, and gives the first verdict. */
export async function take(
  reservation: Reservation,
  checks: readonly Check[],
  lease: LeaseTerms = terms,
): Promise<Verdict> {
  const [verdict] = await reservation.consume(checks, { timeoutMs: 1000, lease })
  return verdict as Verdict
}

/** Asks every 10 ms, until as much is held as will be asked for in the life of a lease. */
export async function warmUp(
  reservation: Reservation,
  checks: readonly Check[],
  count = 100,
  lease = terms,
): Promise<void> {
  for (let i = 0; i < count; i++) {
    await take(reservation, checks, lease)
    await pass(10)
  }
}
