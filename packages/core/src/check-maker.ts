import type { ResolvedPolicy } from './policy.js'
import type { Check } from './store.js'

/** Makes the checks of one limiter's requests. */
export class CheckMaker {
  readonly #encodedName: string
  readonly #tails = new WeakMap<ResolvedPolicy, string>()

  /** @param encodedName the limiter's, as in keys */
  constructor(encodedName: string) {
    this.#encodedName = encodedName
  }

  /**
   * The same cost under each policy.
   * @param owner the request's key, encoded
   */
  make(policies: readonly ResolvedPolicy[], owner: string, cost: number): readonly Check[] {
    const checks = new Array<Check>(policies.length)
    const head = headOf(owner)
    for (let i = 0; i < policies.length; i++) {
      const policy = policies[i] as ResolvedPolicy
      const tail = this.#tailOf(policy)
      checks[i] = { key: head + tail, owner, tail, policy, least: cost, most: cost }
    }
    return checks
  }

  /** The store key of one policy. */
  keyOf(policy: ResolvedPolicy, owner: string): string {
    return headOf(owner) + this.#tailOf(policy)
  }

  #tailOf(policy: ResolvedPolicy): string {
    let tail = this.#tails.get(policy)
    if (tail === undefined) {
      tail = `}:${this.#encodedName}:${policy.keySuffix}`
      this.#tails.set(policy, tail)
    }
    return tail
  }
}

function headOf(owner: string): string {
  return `1:{${owner}`
}
