import type { ExecutionContext } from '@nestjs/common'
import { HttpLimiter, type Limiter, type Policy } from '@sluice/core'
import type { RateLimitOptions } from './options.js'

/** A limiter as a guard enforces it. */
export interface EnforcedLimit {
  readonly http: HttpLimiter<ExecutionContext, [context: ExecutionContext]>
  /** What to call for a denied call before it is refused. */
  readonly onLimited: RateLimitOptions['onLimited']
}

/** The limits that were stated in one place, which are one charge; some methods may be exempt from some of them. */
export class Limit {
  readonly name: string
  readonly limiter: Limiter
  /** The names of its policies that have one. */
  readonly policyNames: ReadonlySet<string>
  readonly #options: RateLimitOptions
  /** By the names of the policies that are left out. */
  readonly #enforced = new Map<string, EnforcedLimit>()
  /** Limiters that are given the same array share their counts: each is made while its policies are in there. */
  readonly #policies: Policy[] = []

  /**
   * @param options with all that is inherited, `store` included
   * @throws SluiceError with the option, its value and what is expected
   */
  constructor(options: RateLimitOptions) {
    this.#options = options
    const { http } = this.#make([])
    this.limiter = http.limiter
    this.name = this.limiter.name
    this.policyNames = policyNamesOf(options)
  }

  /** Whether a name is that of the limiter or of one of its policies. */
  has(name: string): boolean {
    return name === this.name || this.policyNames.has(name)
  }

  /** The limits but for these names; undefined where none is left. */
  without(names: readonly string[]): EnforcedLimit | undefined {
    if (names.includes(this.name)) return undefined
    const left = [...this.policyNames].filter((name) => names.includes(name)).sort()
    if (left.length > 0 && left.length === this.#options.policies?.length) return undefined
    return this.#enforced.get(JSON.stringify(left)) ?? this.#make(left)
  }

  /** Frees the names of the limiters that were made here. */
  async close(): Promise<void> {
    if (this.#options.limiter !== undefined) return
    await Promise.all([...this.#enforced.values()].map(({ http }) => http.limiter.close()))
  }

  #make(left: readonly string[]): EnforcedLimit {
    const { policies, onLimited } = this.#options
    const options = { ...this.#options }
    if (Array.isArray(policies)) {
      const kept = policies.filter(({ name }: Policy) => name === undefined || !left.includes(name))
      this.#policies.splice(0, this.#policies.length, ...kept)
      options.policies = this.#policies
    }
    const enforced = { http: new HttpLimiter(options), onLimited }
    this.#enforced.set(JSON.stringify(left), enforced)
    return enforced
  }
}

/** The policies that can be left out one by one; those of plans can only together. */
function policyNamesOf({ limiter, name, policies = [], plans }: RateLimitOptions): ReadonlySet<string> {
  if (limiter !== undefined || plans !== undefined) return new Set()
  const names = policies.length > 0 ? policies.map((policy) => policy.name) : [name]
  return new Set(names.filter((given) => given !== undefined))
}
