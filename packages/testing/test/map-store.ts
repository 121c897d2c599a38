import { type Check, decide, type Store, type Verdict } from '@sluice/core'

export class MapStore implements Store {
  readonly shared = false
  readonly #states = new Map<string, unknown>()

  constructor(readonly nowUs: () => number) {}

  async consume(checks: readonly Check[]): Promise<readonly Verdict[]> {
    const outcomes = this.#decide(checks)
    for (const [i, { key }] of checks.entries()) {
      const next = outcomes[i]?.next
      if (next !== undefined) this.#states.set(key, next)
    }
    return outcomes
  }

  async peek(checks: readonly Check[]): Promise<readonly Verdict[]> {
    return this.#decide(checks)
  }

  async close(): Promise<void> {
    this.#states.clear()
  }

  #decide(checks: readonly Check[]) {
    const states = checks.map(({ key }) => this.#states.get(key))
    return decide(checks, states, this.nowUs())
  }
}
