import { addUp, type Decision, type DecisionPart } from '../decision.js'
import { formatDuration } from '../duration.js'
import { badOption, refuseUnknownOptions, SluiceError, show } from '../errors.js'
import { Limiter, type LimitRequest } from '../limiter.js'
import { allLimiterOptions, type LimiterOptions } from '../limiter-options.js'
import { isLimit, type Policy } from '../policy.js'
import { within } from '../within.js'
import { Departures } from './departures.js'
import type { Exchange, Extractor, MaybePromise, RequestContext } from './exchange.js'
import { byIp, ipKey } from './extractors.js'
import {
  type HeaderSet,
  type HeaderWriter,
  type LegacyReset,
  postpone,
  quotaHeaders,
  type ResponseHeader,
  resolveHeaderSets,
  retryAfterSeconds,
} from './headers.js'
import { type Message, type Refusal, readMessage, refuse } from './refusal.js'

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
  /** Only the boolean `true` lets the request pass uncounted. */
  skip?: RequestFunction<Req, boolean>
  /** Whether a CORS preflight, which carries no credentials, passes uncounted. Default `'skip'`. */
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
  refundWhen?: (request: Req, response: Res) => boolean
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

/** What an adapter must do with a request. */
export interface HttpOutcome {
  /** The decision of all limiters on this request so far. */
  readonly decision: Decision
  /**
   * The reply to send, if this limiter denied the request; its headers are set. Where headers had gone out before,
   * there is nothing to send.
   */
  readonly refusal: Refusal | undefined
  /** Whether the request may go on: not when it was denied, nor when its client left while it waited. */
  readonly proceed: boolean
}

/** What is known of one request across the limiters it passes. */
interface RequestRecord {
  readonly parts: RequestPart[]
  readonly outcomes: Map<HttpLimiter<never>, Promise<HttpOutcome>>
  /** Fields as we last wrote them, so that members of others are kept when ours change. */
  readonly written: Map<string, string>
}

interface RequestPart extends DecisionPart {
  readonly writers: readonly HeaderWriter[]
}

/** Clients and proxies seldom keep a connection open for longer. */
const longestWaitMs = 60_000

const records = new WeakMap<object, RequestRecord>()

const httpOptions = [
  'limiter',
  'key',
  'cost',
  'limit',
  'plan',
  'defaultPlan',
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

/** Limits HTTP requests for an adapter, which only translates between its framework and an {@link Exchange}. */
export class HttpLimiter<Req, Handler extends unknown[] = [Req], Res = unknown> {
  readonly #options: RateLimitOptions<Req, Handler, Res>
  readonly #limiter: Limiter
  readonly #key: Extractor<Req>
  readonly #writers: readonly HeaderWriter[]
  readonly #retryJitterMs: number
  readonly #random: () => number
  readonly #statusCode: number
  readonly #message: Message | undefined
  readonly #departures = new Departures()
  #proxyTrustChecked = false

  /**
   * @param random what `retryJitterMs` draws from, from 0 up to 1; for tests
   * @throws SluiceError with the option, its value and what is expected
   */
  constructor(options: RateLimitOptions<Req, Handler, Res>, random = Math.random) {
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
    if (!Number.isInteger(statusCode) || statusCode < 400 || statusCode > 599) {
      throw badOption('statusCode', statusCode, 'a status from 400 to 599')
    }
    if (!Number.isInteger(retryJitterMs) || retryJitterMs < 0 || retryJitterMs > 86_400_000) {
      throw badOption('retryJitterMs', retryJitterMs, 'whole milliseconds from 0 to 86,400,000')
    }
    if (preflight !== 'skip' && preflight !== 'count') {
      throw badOption('preflight', preflight, "'skip' or 'count'")
    }
    this.#options = options
    this.#key = key
    this.#writers = resolveHeaderSets(headers, legacyReset)
    this.#retryJitterMs = retryJitterMs
    this.#random = random
    this.#statusCode = statusCode
    this.#message = readMessage(options.message)
    this.#limiter = limiterFrom(options)
    this.#checkPlans()
    if (this.#limiter.longestDelayMs > longestWaitMs) {
      this.#limiter.warn(
        'SLUICE_LONG_QUEUE',
        `requests may wait ${formatDuration(this.#limiter.longestDelayMs)} in the queue of limiter ${show(this.#limiter.name)}, longer than most clients and proxies keep a connection open`,
      )
    }
  }

  /** The limiter behind it, for `refund`, `reset` and the like. */
  get limiter(): Limiter {
    return this.#limiter
  }

  /**
   * Decides a request, sets the headers of the response, and tells what to reply if it is denied. A request that
   * passes here again is not charged again.
   * @throws SluiceError when a function of the request failed
   */
  async handle(exchange: Exchange<Req, Res>): Promise<HttpOutcome> {
    let record = records.get(exchange.identity)
    if (!record) {
      record = { parts: [], outcomes: new Map(), written: new Map() }
      records.set(exchange.identity, record)
    }
    const earlier = record.outcomes.get(this as never)
    if (earlier) {
      const { proceed } = await earlier
      return { decision: addUp(record.parts), refusal: undefined, proceed }
    }
    const outcome = this.#limit(exchange, record)
    record.outcomes.set(this as never, outcome)
    return outcome
  }

  async #limit(exchange: Exchange<Req, Res>, record: RequestRecord): Promise<HttpOutcome> {
    const own = await this.#decide(exchange)
    record.parts.push({ limiter: this.#limiter.name, decision: own, writers: this.#writers })
    const decision = addUp(record.parts)
    const told = decision.allowed ? decision : this.#jitter(decision)
    if (!exchange.headersSent) setHeaders(exchange, record, told)
    if (!own.allowed) {
      const refusal = refuse(told, this.#statusCode, this.#message, exchange.header('accept'))
      return { decision, refusal, proceed: false }
    }
    const proceed = own.delayMs === 0 || (await this.#depart(exchange, own))
    if (proceed && this.#options.refundWhen && own.policies.length > 0) this.#refundAfter(exchange, own)
    return { decision, refusal: undefined, proceed }
  }

  /** Holds a request until its departure; false when its client left, which gives its place back. */
  async #depart(exchange: Exchange<Req, Res>, decision: Decision): Promise<boolean> {
    const { departed, left } = this.#departures.wait(decision.delayMs)
    exchange.onEnd(left)
    if (await departed) return true
    this.#refund(decision)
    return false
  }

  #refundAfter(exchange: Exchange<Req, Res>, decision: Decision): void {
    const { refundWhen } = this.#options
    exchange.onEnd((finished) => {
      try {
        if (finished && refundWhen?.(exchange.request, exchange.response) === true) this.#refund(decision)
      } catch (error) {
        this.#limiter.warn(
          'SLUICE_REQUEST_FUNCTION',
          `option \`refundWhen\` of limiter ${show(this.#limiter.name)} threw: ${error}`,
        )
      }
    })
  }

  /** The reply is out already, so that a store that fails now is only told of. */
  #refund(decision: Decision): void {
    this.#limiter.refund(decision).catch((error) => this.#limiter.storeFailed(error))
  }

  async #decide(exchange: Exchange<Req>): Promise<Decision> {
    const {
      skip,
      plan: planOption,
      defaultPlan,
      cost: costOption,
      limit: limitOption,
      preflight,
    } = this.#options
    if (preflight !== 'count' && isPreflight(exchange)) return this.#limiter.skip('')
    const addressOf = (): string | undefined => this.#addressOf(exchange)
    const context = {
      get ip() {
        return addressOf()
      },
      plan: undefined as string | undefined,
      header: (name: string) => exchange.header(name),
    }
    if (skip && (await this.#ask('skip', skip, exchange, context)) === true) return this.#limiter.skip('')
    if (planOption !== undefined || defaultPlan !== undefined) {
      const plan =
        typeof planOption === 'function' ? await this.#ask('plan', planOption, exchange, context) : planOption
      context.plan = this.#knownPlan(plan)
    }
    const request: LimitRequest = {
      key: (await this.#ask('key', this.#key, exchange, context)) ?? ipKey(context.ip),
    }
    if (context.plan !== undefined) request.plan = context.plan
    if (costOption !== undefined) {
      request.cost =
        typeof costOption === 'function' ? await this.#ask('cost', costOption, exchange, context) : costOption
    }
    if (typeof limitOption === 'function') {
      request.limit = await this.#ask('limit', limitOption, exchange, context)
    }
    return this.#limiter.consume(request)
  }

  #addressOf(exchange: Exchange<Req>): string | undefined {
    if (!this.#proxyTrustChecked) {
      this.#proxyTrustChecked = true
      if (exchange.trustsEveryProxy) {
        this.#limiter.warn(
          'SLUICE_TRUSTS_EVERY_PROXY',
          'the framework trusts every proxy, so a client is counted by any address that it writes into X-Forwarded-For; trust only the proxies in front of this server',
        )
      }
    }
    return exchange.ip
  }

  /** Calls a function of the request within the budget. */
  async #ask<T>(
    option: string,
    ask: RequestFunction<Req, T>,
    exchange: Exchange<Req>,
    context: RequestContext,
  ): Promise<T> {
    const failed = (what: string, cause?: unknown): SluiceError =>
      new SluiceError(
        'SLUICE_REQUEST_FUNCTION',
        `Option \`${option}\` of limiter ${show(this.#limiter.name)} ${what}`,
        { cause },
      )
    try {
      const value = ask(exchange.request, context)
      if (!isThenable(value)) return value
      const { timeoutMs } = this.#limiter
      return await within(Promise.resolve(value), timeoutMs, () =>
        failed(`did not settle within ${timeoutMs} ms`),
      )
    } catch (error) {
      throw error instanceof SluiceError ? error : failed('threw', error)
    }
  }

  #knownPlan(plan: unknown): string | undefined {
    const { defaultPlan } = this.#options
    if (this.#limiter.hasPlan(plan) || defaultPlan === undefined) return plan as string | undefined
    if (plan !== undefined) {
      this.#limiter.warn('SLUICE_UNKNOWN_PLAN', `no plan is called ${show(plan)}, so \`defaultPlan\` applies`)
    }
    return defaultPlan
  }

  #jitter(denial: Decision): Decision {
    return this.#retryJitterMs === 0
      ? denial
      : postpone(denial, Math.floor(this.#random() * (this.#retryJitterMs + 1)))
  }

  #checkPlans(): void {
    const { plan, defaultPlan } = this.#options
    if (!this.#limiter.hasPlans) {
      if (plan !== undefined) throw badOption('plan', plan, 'a limiter with `plans`')
      if (defaultPlan !== undefined) throw badOption('defaultPlan', defaultPlan, 'a limiter with `plans`')
      return
    }
    if (defaultPlan !== undefined && !this.#limiter.hasPlan(defaultPlan)) {
      throw badOption('defaultPlan', defaultPlan, 'the name of one of `plans`')
    }
    if (typeof plan !== 'function' && !this.#limiter.hasPlan(plan ?? defaultPlan)) {
      throw badOption(
        'plan',
        plan,
        'the name of one of `plans`, or a function of the request that returns it',
      )
    }
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
  const given = Object.entries(options).filter(([option]) => allLimiterOptions.includes(option))
  const limiterOptions = Object.fromEntries(given) as LimiterOptions & Partial<Policy>
  if (typeof limit === 'function') {
    if (options.name === undefined) throw badOption('name', undefined, 'a name, since `limit` is a function')
    limiterOptions.limit = placeholderLimit
  }
  return new Limiter(limiterOptions)
}

/** Stands for a limit that each request brings itself; one that every algorithm takes. */
const placeholderLimit = 100_000

function isPreflight(exchange: Exchange): boolean {
  return exchange.method === 'OPTIONS' && exchange.header('access-control-request-method') !== undefined
}

/** Promises of other libraries and realms too. */
function isThenable<T>(value: MaybePromise<T>): value is Promise<T> {
  return typeof (value as Promise<T> | undefined)?.then === 'function'
}

/** Writes the headers that the limiters on this request so far send, in all their sets. */
function setHeaders(exchange: Exchange, record: RequestRecord, decision: Decision): void {
  const { parts } = record
  const writers = parts.flatMap((part) => part.writers)
  // Policies come in the order of their limiters, some of which keep theirs to themselves.
  const shown = parts.flatMap((part) => part.decision.policies.map(() => part.writers.length > 0))
  const headers = quotaHeaders(
    decision.policies.filter((_, i) => shown[i]),
    writers,
  )
  for (const header of headers) {
    const { name, value, list } = header
    exchange.setResponseHeader(name, list ? merge(exchange, record.written.get(name), header) : value)
    record.written.set(name, value)
  }
  const exposed = headers.map((header) => header.name)
  if (!decision.allowed) exchange.setResponseHeader('Cache-Control', 'no-store')
  const retryAfter = retryAfterSeconds(decision)
  if (retryAfter !== undefined) {
    exchange.setResponseHeader('Retry-After', String(retryAfter))
    exposed.push('Retry-After')
  }
  if (exchange.responseHeader('access-control-allow-origin') !== undefined) expose(exchange, exposed)
}

/** Our members of a list field, in place of what we wrote before, beside those of others. */
function merge(exchange: Exchange, ours: string | undefined, { name, value }: ResponseHeader): string {
  const present = exchange.responseHeader(name)
  if (!present) return value
  // Commas around both, so that only whole members match.
  const line = `, ${present}, `
  const earlier = `, ${ours}, `
  return ours !== undefined && line.includes(earlier)
    ? line.replace(earlier, () => `, ${value}, `).slice(2, -2)
    : `${present}, ${value}`
}

/** Lets scripts of other origins read our headers. */
function expose(exchange: Exchange, names: readonly string[]): void {
  const present = exchange.responseHeader('access-control-expose-headers')
  const known = (present ?? '').toLowerCase().split(/\s*,\s*/)
  const missing = names.filter((name) => !known.includes(name.toLowerCase()))
  if (missing.length === 0) return
  exchange.setResponseHeader(
    'Access-Control-Expose-Headers',
    [...(present ? [present] : []), ...missing].join(', '),
  )
}
