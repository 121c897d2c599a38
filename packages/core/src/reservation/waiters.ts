import { storeTimeout } from '../errors.js'
import { within } from '../failure/within.js'
import type { Verdict } from '../store.js'

/** A decision that waits for the store. */
export interface Waiter {
  readonly cost: number
  /** When its budget is spent, by the clock of its lease. */
  readonly deadlineMs: number
  resolve(verdicts: readonly Verdict[]): void
  reject(error: unknown): void
}

/** The decisions that wait for units of one lease, in the order in which they came. */
export class Waiters {
  readonly #waiting = new Set<Waiter>()
  #units = 0

  get count(): number {
    return this.#waiting.size
  }

  /** The units that all of them wait for. */
  get units(): number {
    return this.#units
  }

  /** Those who wait now. */
  list(): readonly Waiter[] {
    return [...this.#waiting]
  }

  /**
   * Waits until it is resolved, or its budget is spent.
   * @throws SluiceError `SLUICE_STORE_TIMEOUT`; what it is rejected with
   */
  wait(cost: number, timeoutMs: number, nowMs: number): Promise<readonly Verdict[]> {
    let waiter: Waiter
    const answer = new Promise<readonly Verdict[]>((resolve, reject) => {
      waiter = { cost, deadlineMs: nowMs + timeoutMs, resolve, reject }
      this.#waiting.add(waiter)
      this.#units += cost
    })
    return within(answer, timeoutMs, () => {
      this.#remove(waiter)
      return storeTimeout(timeoutMs)
    })
  }

  /** Takes out those of these who still wait. */
  dismiss(waiters: readonly Waiter[]): readonly Waiter[] {
    return waiters.filter((waiter) => this.#remove(waiter))
  }

  #remove(waiter: Waiter): boolean {
    const waited = this.#waiting.delete(waiter)
    if (waited) this.#units -= waiter.cost
    return waited
  }
}
