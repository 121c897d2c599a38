import { badOption, refuseUnknownOptions } from '../errors.js'
import type { Limiter } from '../limiter.js'
import type { MaybePromise, RequestContext } from './exchange.js'
import type { Context } from './request-context.js'

/**
 * What becomes of a request when the function `plan` throws, rejects, or does not settle within `timeoutMs`:
 * - `'throw'`: the error goes to the framework's error path.
 * - `'last-known'`: the plan that its key last had in this process, of the 10,000 keys seen last; a key that is not
 *   among them has `defaultPlan`, and where there is none the error is thrown.
 * - `'store-error'`: it is treated as if the store had failed, as `onStoreError` says: `'local'` counts it under
 *   `defaultPlan`, and allows it where there is none. The store is still asked for a block of the key.
 * - `{ plan: 'free' }`: that plan.
 *
 * Each request that is not thrown is told as an event `plan-error`. Without an answer the function `key` has the plan
 * that stands in, if there is one.
 */
export type OnPlanError = 'throw' | 'last-known' | 'store-error' | { readonly plan: string }

/** Checks the option `onPlanError`. */
export function checkOnPlanError(value: unknown, plan: unknown, limiter: Limiter): void {
  if (value === undefined) return
  if (typeof plan !== 'function')
    throw badOption('onPlanError', value, 'a `plan` that is a function beside it')
  if (typeof value === 'object' && value !== null) {
    refuseUnknownOptions('`onPlanError`', value, ['plan'])
    const named = (value as { plan?: unknown }).plan
    if (!limiter.hasPlan(named)) throw badOption('onPlanError.plan', named, 'the name of one of `plans`')
  } else if (!['throw', 'last-known', 'store-error'].includes(value as string)) {
    throw badOption(
      'onPlanError',
      value,
      "'throw', 'last-known', 'store-error', or { plan } with the name of one",
    )
  }
}

const maxKnown = 10_000

/** The plans that keys had last, and what stands in for a plan that could not be found. */
export class KnownPlans {
  readonly #limiter: Limiter
  readonly #onPlanError: OnPlanError
  readonly #defaultPlan: string | undefined
  /** By key, the one seen last at the end. Those of the default plan need no place, which unknown keys would fill. */
  readonly #known = new Map<string, string>()

  constructor(limiter: Limiter, onPlanError: OnPlanError, defaultPlan: string | undefined) {
    this.#limiter = limiter
    this.#onPlanError = onPlanError
    this.#defaultPlan = defaultPlan
  }

  /** Notes the plan that a key has. */
  note(key: string, plan: string | undefined): void {
    if (this.#onPlanError !== 'last-known' || !this.#limiter.hasPlan(plan)) return
    this.#known.delete(key)
    if (plan === this.#defaultPlan) return
    this.#known.set(key, plan)
    if (this.#known.size > maxKnown) this.#known.delete(this.#known.keys().next().value as string)
  }

  /**
   * The plan in place of the one whose lookup failed, if any.
   * @param keyOf the key of the request, for a context
   * @throws the error of the lookup, where nothing is to stand in
   */
  async standIn(
    error: unknown,
    context: Context,
    keyOf: (context: RequestContext) => MaybePromise<string>,
  ): Promise<string | undefined> {
    if (typeof this.#onPlanError === 'object') return this.#onPlanError.plan
    if (this.#onPlanError === 'store-error') return this.#defaultPlan
    if (this.#onPlanError === 'throw') throw error
    let dependent = false
    const planless = context.withoutPlan(() => {
      dependent = true
    })
    const key = await keyOf(planless)
    // A key that depends on the plan is another one without it, and may be somebody else's.
    const plan = (dependent ? undefined : this.#known.get(key)) ?? this.#defaultPlan
    if (plan === undefined) throw error
    return plan
  }
}
