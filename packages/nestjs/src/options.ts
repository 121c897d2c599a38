import type { ExecutionContext } from '@nestjs/common'
import {
  type RateLimitOptions as CoreOptions,
  countingOptions,
  inheritOptions,
  pickOptions,
  refuseUnknownOptions,
  tellingOptions,
} from '@sluice/core'

/**
 * Options of a limiter of calls: those of a limiter and its policies, or a `limiter`, and those of HTTP. Functions get
 * the `ExecutionContext`, whatever the transport. `refundWhen` and waits that end with the client are of HTTP alone.
 *
 * `onLimited` is called for a denied call before it is refused: what it throws goes to the exception filters in place
 * of the refusal. One that replies itself, over HTTP, must have done so when it settles.
 */
export type RateLimitOptions = CoreOptions<ExecutionContext, [context: ExecutionContext], unknown>

/** Options of {@link RateLimitModule.forRoot}. */
export type RateLimitModuleOptions = RateLimitOptions & {
  /** Limiters that several classes and methods share, by the name that their `@RateLimit({ group })` gives. */
  groups?: Readonly<Record<string, RateLimitOptions>>
}

/** What `@RateLimit()` states: limits of its own, or one of the module's `groups`. */
export type RateLimitStatement =
  | (RateLimitOptions & { group?: never })
  | ({
      /** One of the `groups` of the module, which has the options of the limiter that all share. */
      group: string
    } & { [option in keyof RateLimitOptions]?: never })

/** Which plan a call has. */
const ofPlans = ['plan', 'defaultPlan', 'onPlanError'] as const
/** What the policies come from. */
const forms = ['limiter', 'limit', 'window', 'policies', 'plans'] as const

/** Whether the options state limits, and not only how to count. */
export function statesLimits(options: RateLimitOptions): boolean {
  return forms.some((form) => options[form] !== undefined)
}

/** Refuses options of a module without limits of its own that no other limits inherit. */
export function refuseOwnOptions(options: RateLimitOptions): void {
  const known = [...countingOptions, ...tellingOptions, ...ofPlans, ...forms, 'groups']
  refuseUnknownOptions('RateLimitModule without limits of its own', options, known)
}

/** The options of the module's own limits; beside a `limiter`, some are there for others alone. */
export function ownOptions(options: RateLimitOptions): RateLimitOptions {
  const own = { ...options }
  if (own.limiter !== undefined) for (const name of countingOptions) delete own[name]
  if (own.plans === undefined && !own.limiter?.hasPlans) for (const name of ofPlans) delete own[name]
  return own
}

/** Options completed by those of the module. A plan without plans means those of the module. */
export function inherit(options: RateLimitOptions, module: RateLimitOptions): RateLimitOptions {
  const plans: RateLimitOptions = {}
  if (!statesLimits(options) && options.plan !== undefined)
    Object.assign(plans, pickOptions(module, ['plans']))
  if (options.plans !== undefined || options.limiter?.hasPlans || plans.plans !== undefined) {
    Object.assign(plans, pickOptions(module, ofPlans))
  }
  return { ...plans, ...inheritOptions(options, module) }
}
