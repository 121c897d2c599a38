import type { ResolvedPolicy } from '../policy.js'
import type { ConsumeOptions } from '../store.js'
import { leaseTermsOf } from './lease-terms.js'
import type { Reserve } from './reserve.js'

/** The options of a limiter's calls to a shared store, with the terms on which the policies of each call lease. */
export class LeaseOptions {
  readonly #plain: ConsumeOptions
  readonly #limiter: { readonly reserve?: Reserve | undefined; readonly nodes?: number | undefined }
  readonly #byPolicies = new WeakMap<readonly ResolvedPolicy[], ConsumeOptions>()

  /** @param plain those of policies that do not lease */
  constructor(plain: ConsumeOptions, limiter: { reserve?: Reserve | undefined; nodes?: number | undefined }) {
    this.#plain = plain
    this.#limiter = limiter
  }

  of(policies: readonly ResolvedPolicy[]): ConsumeOptions {
    let options = this.#byPolicies.get(policies)
    if (!options) {
      const { reserve, nodes } = this.#limiter
      const terms = leaseTermsOf(policies, reserve)
      options = terms ? { ...this.#plain, lease: { ...terms, nodes } } : this.#plain
      this.#byPolicies.set(policies, options)
    }
    return options
  }
}
