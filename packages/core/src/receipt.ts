import type { Check, Store, Verdict } from './store.js'

/** What a limiter charged for a decision, from which it can give back. */
export interface Receipt {
  readonly limiter: object
  /** Where it was charged. */
  readonly store: Store
  readonly checks: readonly Check[]
  readonly verdicts: readonly Verdict[]
  /** Whether it was given back; only once, however often it is asked. */
  spent: boolean
}

/** Constructs to its argument, so that a derived class adds its private field to that object. */
export class Given {
  constructor(decision: object) {
    // biome-ignore lint/correctness/noConstructorReturn: see above
    return decision
  }
}

/**
 * The receipts of a decision, on the decision itself and yet out of sight of those who print, compare or copy it.
 * A WeakMap would do the same for forty times the price.
 */
class Receipts extends Given {
  readonly #receipts: readonly Receipt[]

  constructor(decision: object, receipts: readonly Receipt[]) {
    super(decision)
    this.#receipts = receipts
  }

  static of(decision: object): readonly Receipt[] {
    return #receipts in decision ? decision.#receipts : []
  }
}

/** Attaches receipts to a decision, once. */
export function attachReceipts<T extends object>(decision: T, receipts: readonly Receipt[]): T {
  new Receipts(decision, receipts)
  return decision
}

/** The receipts of a decision: one of each limiter that charged for it. */
export function receiptsOf(decision: object): readonly Receipt[] {
  return Receipts.of(decision)
}
