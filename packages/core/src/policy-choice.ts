import { SluiceError, show } from './errors.js'
import { isLimit, type ResolvedPolicy } from './policy.js'
import { remembering } from './remembering.js'

/** The policies of a limiter, as its options give them. */
export interface PolicySource {
  /** The policies of every request, where there are no plans. */
  readonly policies: readonly ResolvedPolicy[]
  readonly plans?: ReadonlyMap<string, readonly ResolvedPolicy[]>
}

const maxCachedLimits = 1000

/** Finds the policies of a request. */
export class PolicyChoice {
  readonly #limiter: string
  readonly #source: PolicySource
  /** Where the limit may depend on the request: the policies by limit. */
  readonly #byLimit: ((limit: number) => readonly ResolvedPolicy[]) | undefined

  /** @param limitVaries whether requests may bring a limit of their own */
  constructor(limiter: string, source: PolicySource, limitVaries: boolean) {
    this.#limiter = limiter
    this.#source = source
    this.#byLimit = limitVaries
      ? remembering(maxCachedLimits, (limit) => source.policies.map((policy) => policy.withLimit(limit)))
      : undefined
  }

  /** Those of each plan. */
  get each(): readonly (readonly ResolvedPolicy[])[] {
    const { plans, policies } = this.#source
    return plans ? [...plans.values()] : [policies]
  }

  /** Those of every plan. */
  get all(): readonly ResolvedPolicy[] {
    return this.each.flat()
  }

  /** Whether policies depend on the request's plan. */
  get hasPlans(): boolean {
    return this.#source.plans !== undefined
  }

  hasPlan(plan: unknown): plan is string {
    return typeof plan === 'string' && this.#source.plans !== undefined && this.#source.plans.has(plan)
  }

  /** @throws SluiceError `SLUICE_UNKNOWN_PLAN`, `SLUICE_BAD_LIMIT` */
  of(plan: unknown, limit: number | undefined): readonly ResolvedPolicy[] {
    const { plans, policies } = this.#source
    if (!plans) {
      if (plan === undefined) return this.#withLimit(policies, limit)
      throw new SluiceError(
        'SLUICE_UNKNOWN_PLAN',
        `Limiter ${show(this.#limiter)} has no plans, so ${show(plan)} is none of them`,
      )
    }
    const ofPlan = typeof plan === 'string' ? plans.get(plan) : undefined
    if (ofPlan) return this.#withLimit(ofPlan, limit)
    throw new SluiceError(
      'SLUICE_UNKNOWN_PLAN',
      `Limiter ${show(this.#limiter)} has no plan ${show(plan)}. Expected one of ${[...plans.keys()].join(', ')}`,
    )
  }

  #withLimit(policies: readonly ResolvedPolicy[], limit: number | undefined): readonly ResolvedPolicy[] {
    if (limit === undefined) return policies
    if (!this.#byLimit) {
      throw new SluiceError(
        'SLUICE_BAD_LIMIT',
        'A limit of the request needs a limiter with a `name` and one policy in the short form { name, limit, window }',
      )
    }
    if (!isLimit(limit)) {
      throw new SluiceError(
        'SLUICE_BAD_LIMIT',
        `The limit is ${show(limit)}. Expected a whole number from 0 to 1,000,000,000`,
      )
    }
    return this.#byLimit(limit)
  }
}
