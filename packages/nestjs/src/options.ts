import type { ExecutionContext } from '@nestjs/common'
import { type RateLimitOptions as CoreOptions, refuseUnknownOptions } from '@sluice/core'

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

/** How and where a limiter counts, which one that is given has already. */
const ofLimiter = ['store', 'timeoutMs', 'onStoreError', 'nodes', 'onEvent', 'logger'] as const
/** Who is counted, and what clients are told. */
const ofHttp = [
  'key',
  'preflight',
  'headers',
  'legacyReset',
  'retryJitterMs',
  'onLimited',
  'message',
  'statusCode',
] as const
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
  const known = [...ofLimiter, ...ofHttp, ...ofPlans, ...forms, 'groups']
  refuseUnknownOptions('RateLimitModule without limits of its own', options, known)
}

/** The options of the module's own limits; beside a `limiter`, some are there for others alone. */
export function ownOptions(options: RateLimitOptions): RateLimitOptions {
  const own = { ...options }
  if (own.limiter !== undefined) for (const name of ofLimiter) delete own[name]
  if (own.plans === undefined && !own.limiter?.hasPlans) for (const name of ofPlans) delete own[name]
  return own
}

/**
 * Options completed by those of the module. A reply of one's own replaces the other kinds of reply; a plan without
 * plans means those of the module.
 */
export function inherit(options: RateLimitOptions, module: RateLimitOptions): RateLimitOptions {
  const inherited = pick(module, options.limiter === undefined ? [...ofLimiter, ...ofHttp] : ofHttp)
  if (options.onLimited !== undefined) {
    delete inherited.message
    delete inherited.statusCode
  }
  if (options.message !== undefined || options.statusCode !== undefined) delete inherited.onLimited
  if (!statesLimits(options) && options.plan !== undefined) Object.assign(inherited, pick(module, ['plans']))
  if (options.plans !== undefined || options.limiter?.hasPlans || inherited.plans !== undefined) {
    Object.assign(inherited, pick(module, ofPlans))
  }
  return { ...inherited, ...pick(options, Object.keys(options) as (keyof RateLimitOptions)[]) }
}

/** These options, where they are given. */
function pick(options: RateLimitOptions, names: readonly (keyof RateLimitOptions)[]): RateLimitOptions {
  return Object.fromEntries(
    names.map((name) => [name, options[name]]).filter(([, value]) => value !== undefined),
  )
}
