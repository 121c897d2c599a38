import { type Check, decide, type Refund, type Store, type Verdict } from '@sluice/core'

/** Counts in a Map of its own, without bound. */
export class MapStore implements Store {
  readonly shared = false
  readonly #states = new Map<string, unknown>()

  constructor(readonly nowUs: () => number) {}

  async consume(checks: readonly Check[]): Promise<readonly Verdict[]> {
    const outcomes = this.#decide(checks)
    for (const [i, { key }] of checks.entries()) this.#keep(key, outcomes[i]?.next)
    return outcomes
  }

  async peek(checks: readonly Check[]): Promise<readonly Verdict[]> {
    return this.#decide(checks)
  }

  async refund(refunds: readonly Refund[]): Promise<void> {
    for (const refund of refunds) {
      const { key, policy } = refund
      this.#keep(key, policy.refund(this.#states.get(key), this.nowUs(), refund, policy.rule))
    }
  }

  async reset(keys: readonly string[]): Promise<void> {
    for (const key of keys) this.#states.delete(key)
  }

  async close(): Promise<void> {
    this.#states.clear()
  }

  #decide(checks: readonly Check[]) {
    const states = checks.map(({ key }) => this.#states.get(key))
    return decide(checks, states, this.nowUs())
  }

  #keep(key: string, next: unknown): void {
    if (next !== undefined) this.#states.set(key, next)
  }
}
