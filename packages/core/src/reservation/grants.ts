import { refundsOf } from '../refunds-of.js'
import type { Check, Refund, Verdict } from '../store.js'

/** Units that the store granted in one call. */
export interface Grant {
  unspent: number
  /** When it can be spent no more, in monotonic milliseconds. */
  readonly endsMs: number
  /** When the window or slice ends that it was charged in, after which nothing can be given back. */
  readonly windowEndsMs: number
  readonly arrivedMs: number
  readonly verdicts: readonly Verdict[]
}

/** The grants of one key that are not spent, the oldest first. */
export class Grants {
  readonly #unspent: Grant[] = []
  #units = 0

  /** Units that are left of all of them. */
  get units(): number {
    return this.#units
  }

  get oldest(): Grant | undefined {
    return this.#unspent[0]
  }

  add(grant: Grant): void {
    this.#unspent.push(grant)
    this.#units += grant.unspent
  }

  /** Takes units out of the oldest, at most as many as there are. */
  take(units: number): void {
    this.#units -= units
    for (let left = units; left > 0; ) {
      const grant = this.#unspent[0] as Grant
      const taken = Math.min(left, grant.unspent)
      grant.unspent -= taken
      left -= taken
      if (grant.unspent === 0) this.#unspent.shift()
    }
  }

  /** How to give units of the oldest back to the store. */
  refundsOf(units: number, checks: readonly Check[]): readonly Refund[] {
    const refunds: Refund[] = []
    let left = units
    for (const { unspent, verdicts } of this.#unspent) {
      const part = Math.min(left, unspent)
      if (part === 0) break
      left -= part
      // A policy that only reports may have been charged less than the others, or nothing.
      refunds.push(
        ...refundsOf(checks, verdicts, (granted, { policy }) =>
          policy.countsUnits ? Math.min(part, granted) : 0,
        ),
      )
    }
    return refunds
  }
}
