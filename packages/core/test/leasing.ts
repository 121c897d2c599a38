import { type Policy, resolvePolicy } from '../src/policy.js'
import type { LeaseTerms } from '../src/reservation/lease-terms.js'
import { Reservation } from '../src/reservation/reservation.js'
import type { Check, Verdict } from '../src/store.js'
import { checksOf, type SharedStore } from './shared-store.js'

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

/** Units of which none come back during a test, unless `more` says so. */
export function checksFor(limit: number, more: Partial<Policy> = {}): readonly Check[] {
  return checksOf([resolvePolicy({ algorithm: 'fixed-window', limit, window: '400d', ...more })])
}

/** One process. */
export class Process {
  readonly reservation: Reservation
  readonly #store: SharedStore
  readonly #checks: readonly Check[]
  /** The outcomes of what was asked, in the order in which they came. */
  readonly outcomes: string[] = []

  constructor(store: SharedStore, checks: readonly Check[], nodes: number | 'unknown' = 1) {
    this.#store = store
    this.reservation = new Reservation(store, () => (nodes === 'unknown' ? undefined : nodes))
    this.#checks = checks
  }

  async take(cost = 1, timeoutMs = 1000): Promise<Verdict> {
    const checks = this.#checks.map((check) => ({ ...check, least: cost, most: cost }))
    const [verdict] = await this.reservation.consume(checks, { timeoutMs, lease: { max: 50, ttlMs: 5000 } })
    return verdict as Verdict
  }

  /** Asks without waiting, and notes the outcome under a name. */
  ask(name: string, cost = 1, timeoutMs = 1000): void {
    void this.take(cost, timeoutMs).then(
      ({ allowed }) => this.outcomes.push(`${name} ${allowed ? 'passes' : 'is denied'}`),
      (error: Error & { code?: string }) => this.outcomes.push(`${name}: ${error.code ?? error.message}`),
    )
  }

  /** Spends one unit every 10 ms, so that as many are expected to be asked for later. */
  async warmUp(count = 40): Promise<void> {
    for (let i = 0; i < count; i++) {
      await this.take()
      await pass(10)
    }
    this.#store.calls.length = 0
  }

  /** Takes what it holds, without the store, but for a number of units. */
  async spendTo(units: number): Promise<void> {
    while (this.reservation.held > units) await this.take()
    this.#store.calls.length = 0
  }
}

/** Fifty units at hand, with the next call 10 ms on the way there and 10 back. */
export async function stocked(store: SharedStore, left = 50): Promise<Process> {
  const process = new Process(store, checksFor(10_000))
  await process.warmUp(200)
  // Until the last call, which finds the store in step with what is spent.
  while (process.reservation.held < 50 - 4) await process.take()
  await process.spendTo(left)
  store.outMs = store.backMs = () => 10
  return process
}
