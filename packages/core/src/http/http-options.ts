import { checkWhole } from '../check-whole.js'
import type { Decision } from '../decision.js'
import { badOption, refuseUnknownOptions } from '../errors.js'
import { Limiter } from '../limiter.js'
import { allLimiterOptions, type LimiterOptions } from '../limiter-options.js'
import { isLimit, type Policy } from '../policy.js'
import type { Extractor, MaybePromise, RequestContext } from './exchange.js'
import { byIp } from './extractors.js'
import { type HeaderField, type HeaderSet, type LegacyReset, resolveHeaderSets } from './headers.js'
import { pickOptions } from './inherit.js'
import { checkOnPlanError, type OnPlanError } from './plan-error.js'
import { type Message, readMessage } from './refusal.js'

/** A function of the request, sync or async. Its first argument is what the framework's handlers get first. */
export type RequestFunction<Req, T> = (request: Req, context: RequestContext) => MaybePromise<T>

/**
 * The options that every adapter takes beside those of a limiter. Functions of the request that throw, reject, return
 * a bad value or outlast `timeoutMs` go to the framework's error path as a {@link SluiceError}; nothing is charged.
 */
export interface HttpOptions<Req, Handler extends unknown[] = [Req], Res = unknown> {
  /** A limiter made elsewhere, in place of the options of one. */
  limiter?: Limiter
  /** Who is counted. Default `byIp()`. */
  key?: Extractor<Req>
  /** Units a request takes: whole, 0 to 10^9. Default 1. */
  cost?: number | RequestFunction<Req, number>
  /** The plan whose policies apply. Required with `plans`, unless there is a `defaultPlan`. */
  plan?: string | RequestFunction<Req, string | undefined>
  /** The plan of requests whose own is unknown (warned of once) or not given. */
  defaultPlan?: string
  /**
   * What becomes of a request whose `plan` function throws, rejects or is late: see {@link OnPlanError}. Default
   * `'throw'`.
   */
  onPlanError?: OnPlanError
  /** Only the boolean `true` lets the request pass uncounted. */
  skip?: RequestFunction<Req, boolean>
  /**
   * Whether a CORS preflight, which carries no credentials and no body, passes uncounted. Use `'count'` before a handler
   * that does its work for `OPTIONS` requests too. Default `'skip'`.
   */
  preflight?: 'skip' | 'count'
  /**
   * Which quota headers to send, if any. They are one client's own: on responses that a shared cache may store, use
   * false. Default `['draft-8', 'draft-6']`.
   */
  headers?: HeaderSet | readonly HeaderSet[] | false
  /** What `X-RateLimit-Reset` of the set `legacy` is: seconds since 1970, or from now. Default `'epoch'`. */
  legacyReset?: LegacyReset
  /**
   * The most milliseconds by which a denied client is told to wait longer than it must, at random for each decision,
   * so that clients do not all come back at once: whole, 0 to 86,400,000. The decision keeps the exact wait. Default 0.
   */
  retryJitterMs?: number
  /**
   * Replies to a denied request in place of Sluice, whose headers are set by then; status (429, or 503 when
   * `decision.reason` is `store-error`) and body are up to it. What it throws goes to the framework's error path.
   */
  onLimited?: (...handler: [...Handler, decision: Decision]) => unknown
  /** The body of a refusal: text as text/plain, an object as JSON. Default: problem details. */
  message?: string | object
  /** The status of a refusal for want of quota, 400 to 599. Default 429. */
  statusCode?: number
  /**
   * Whether to give back what an allowed request was charged, asked when its response was sent in full: charged first,
   * so that parallel requests cannot slip through before an outcome is known. A response that was cut short is not
   * given back. Default: never.
   */
  refundWhen?: (request: Req, response: Res) => MaybePromise<boolean>
}

/** All options of an adapter: those of a limiter and its policy, or a `limiter`, and those of HTTP. */
export type RateLimitOptions<Req, Handler extends unknown[] = [Req], Res = unknown> = HttpOptions<
  Req,
  Handler,
  Res
> &
  LimiterOptions &
  Partial<Omit<Policy, 'limit'>> & {
    /** Units per window: a number, or a function of the request for a limiter with a `name`. */
    limit?: number | RequestFunction<Req, number>
  }

const httpOptions = [
  'limiter',
  'key',
  'cost',
  'limit',
  'plan',
  'defaultPlan',
  'onPlanError',
  'skip',
  'preflight',
  'headers',
  'legacyReset',
  'retryJitterMs',
  'onLimited',
  'message',
  'statusCode',
  'refundWhen',
]

/** The options of HTTP, checked, with their defaults, and the limiter that they name or describe. */
export interface ResolvedHttpOptions<Req, Handler extends unknown[], Res>
  extends Pick<RateLimitOptions<Req, Handler, Res>, 'cost' | 'plan' | 'defaultPlan' | 'skip' | 'refundWhen'> {
  readonly limiter: Limiter
  readonly key: Extractor<Req>
  /** The limit of a request, where it depends on the request. */
  readonly limit: RequestFunction<Req, number> | undefined
  readonly onPlanError: OnPlanError
  readonly preflight: 'skip' | 'count'
  readonly fields: readonly HeaderField[]
  readonly retryJitterMs: number
  readonly statusCode: number
  readonly message: Message | undefined
}

/**
 * Reads and checks the options of an adapter.
 * @throws SluiceError with the option, its value and what is expected
 */
export function resolveHttpOptions<Req, Handler extends unknown[], Res>(
  options: RateLimitOptions<Req, Handler, Res>,
): ResolvedHttpOptions<Req, Handler, Res> {
  if (typeof options !== 'object' || options === null) {
    throw badOption('options', options, 'an object such as { limit: 100, window: "1m" }')
  }
  const {
    key = byIp(),
    cost,
    headers = ['draft-8', 'draft-6'],
    legacyReset = 'epoch',
    retryJitterMs = 0,
    statusCode = 429,
    preflight = 'skip',
  } = options
  for (const name of ['key', 'skip', 'onLimited', 'refundWhen'] as const) {
    const value = options[name]
    if (value !== undefined && typeof value !== 'function') throw badOption(name, value, 'a function')
  }
  if (cost !== undefined && typeof cost !== 'function' && !isLimit(cost)) {
    throw badOption('cost', cost, 'a whole number from 0 to 1,000,000,000, or a function of the request')
  }
  checkStatusCode(statusCode)
  checkWhole('retryJitterMs', retryJitterMs, 0, 86_400_000, 'whole milliseconds')
  if (preflight !== 'skip' && preflight !== 'count') {
    throw badOption('preflight', preflight, "'skip' or 'count'")
  }
  for (const name of ['message', 'statusCode'] as const) {
    if (options.onLimited && options[name] !== undefined) {
      throw badOption(name, options[name], 'nothing beside `onLimited`, which replies itself')
    }
  }
  const fields = resolveHeaderSets(headers, legacyReset)
  const message = readMessage(options.message)
  const { plan, defaultPlan, skip, refundWhen, limit } = options
  const limiter = limiterFrom(options)
  try {
    checkPlans(limiter, plan, defaultPlan)
    checkOnPlanError(options.onPlanError, plan, limiter)
  } catch (error) {
    // A limiter that came to nothing must not keep its name from the next.
    if (limiter !== options.limiter) void limiter.close()
    throw error
  }
  return {
    limiter,
    key,
    cost,
    plan,
    defaultPlan,
    onPlanError: options.onPlanError ?? 'throw',
    skip,
    refundWhen,
    limit: typeof limit === 'function' ? limit : undefined,
    preflight,
    fields,
    retryJitterMs,
    statusCode,
    message,
  }
}

/** Checks the option `statusCode`. */
export function checkStatusCode(statusCode: number): void {
  if (!Number.isInteger(statusCode) || statusCode < 400 || statusCode > 599) {
    throw badOption('statusCode', statusCode, 'a status from 400 to 599')
  }
}

/** Refuses plans of a request that the limiter cannot follow. */
export function checkPlans(
  limiter: Pick<Limiter, 'hasPlan' | 'hasPlans'>,
  plan: unknown,
  defaultPlan?: string,
): void {
  if (!limiter.hasPlans) {
    if (plan !== undefined) throw badOption('plan', plan, 'a limiter with `plans`')
    if (defaultPlan !== undefined) throw badOption('defaultPlan', defaultPlan, 'a limiter with `plans`')
    return
  }
  if (defaultPlan !== undefined && !limiter.hasPlan(defaultPlan)) {
    throw badOption('defaultPlan', defaultPlan, 'the name of one of `plans`')
  }
  if (typeof plan !== 'function' && !limiter.hasPlan(plan ?? defaultPlan)) {
    throw badOption('plan', plan, 'the name of one of `plans`, or a function that returns it')
  }
}

/** The limiter that the options name or describe. */
function limiterFrom<Req, Handler extends unknown[], Res>(
  options: RateLimitOptions<Req, Handler, Res>,
): Limiter {
  const { limiter, limit } = options
  if (limiter !== undefined) {
    if (!(limiter instanceof Limiter)) throw badOption('limiter', limiter, 'a Limiter')
    refuseUnknownOptions('rateLimit({ limiter })', options, httpOptions)
    if (limit !== undefined && typeof limit !== 'function') {
      throw badOption('limit', limit, 'a function of the request, since `limiter` brings its own number')
    }
    return limiter
  }
  refuseUnknownOptions('rateLimit()', options, [...httpOptions, ...allLimiterOptions])
  const limiterOptions = pickOptions(options, allLimiterOptions) as LimiterOptions & Partial<Policy>
  if (typeof limit === 'function') {
    if (options.name === undefined) throw badOption('name', undefined, 'a name, since `limit` is a function')
    limiterOptions.limit = placeholderLimit
  }
  return new Limiter(limiterOptions)
}

/** Stands for a limit that each request brings itself; one that every algorithm takes. */
const placeholderLimit = 100_000
