import { addUp, type Decision } from '../decision.js'
import { formatDuration } from '../duration.js'
import { SluiceError, show } from '../errors.js'
import { within } from '../failure/within.js'
import type { LimitRequest } from '../limit-request.js'
import type { Limiter } from '../limiter.js'
import { Departures } from './departures.js'
import { type Exchange, isThenable, type MaybePromise, type RequestContext } from './exchange.js'
import { ipKey } from './extractors.js'
import { postpone } from './headers.js'
import {
  type RateLimitOptions,
  type RequestFunction,
  type ResolvedHttpOptions,
  resolveHttpOptions,
} from './http-options.js'
import { Misuse } from './misuse.js'
import { KnownPlans } from './plan-error.js'
import { isPreflight } from './preflight.js'
import { refuse } from './refusal.js'
import { Context } from './request-context.js'
import { type HttpOutcome, knownRecordOf, type RequestRecord, recordOf } from './request-record.js'
import { type ResponseFields, setHeaders } from './response-headers.js'

export type { HttpOutcome } from './request-record.js'

/** Clients and proxies seldom keep a connection open for longer. */
const longestWaitMs = 60_000

/** Limits HTTP requests for an adapter, which only translates between its framework and an {@link Exchange}. */
export class HttpLimiter<Req, Handler extends unknown[] = [Req], Res = unknown> {
  readonly #options: ResolvedHttpOptions<Req, Handler, Res>
  readonly #limiter: Limiter
  readonly #random: () => number
  readonly #departures = new Departures()
  readonly #misuse: Misuse
  readonly #knownPlans: KnownPlans

  /**
   * @param random what `retryJitterMs` draws from, from 0 up to 1; for tests
   * @throws SluiceError with the option, its value and what is expected
   */
  constructor(options: RateLimitOptions<Req, Handler, Res>, random = Math.random) {
    this.#options = resolveHttpOptions(options)
    this.#limiter = this.#options.limiter
    this.#random = random
    this.#knownPlans = new KnownPlans(this.#limiter, this.#options.onPlanError, this.#options.defaultPlan)
    this.#misuse = new Misuse(this.#limiter, options.limiter === undefined)
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
  handle(exchange: Exchange<Req, Res>): Promise<HttpOutcome> {
    this.#misuse.request()
    const record = recordOf(exchange.identity)
    const earlier = record.outcomeOf(this)
    if (earlier) return this.#again(record, earlier)
    const outcome = this.#limit(exchange, record)
    record.addPass(this, outcome)
    return outcome
  }

  async #again(record: RequestRecord, earlier: Promise<HttpOutcome>): Promise<HttpOutcome> {
    // Denied, and yet here again: a reply of the user's own has waved the request on.
    const { proceed, refusal } = await earlier
    return { decision: addUp(record.parts), refusal: undefined, proceed: proceed || refusal !== undefined }
  }

  async #limit(exchange: Exchange<Req, Res>, record: RequestRecord): Promise<HttpOutcome> {
    if (exchange.gone && exchange.ip === undefined) {
      // Its address went with it: there is nobody to count, nor to serve.
      return { decision: this.#limiter.skip(''), refusal: undefined, proceed: false }
    }
    const own = await this.#decide(exchange)
    record.addPart({ limiter: this.#limiter.name, decision: own, fields: this.#options.fields })
    const decision = addUp(record.parts)
    const told = decision.allowed ? decision : this.#jitter(decision)
    record.told = told
    if (!exchange.headersSent) setHeaders(exchange, record.parts, record.written, told)
    if (!own.allowed) {
      const refusal = refuse(told, this.#options.statusCode, this.#options.message, exchange.header('accept'))
      return { decision, refusal, proceed: false }
    }
    const proceed = own.delayMs === 0 || (await this.#depart(exchange, record, own))
    if (proceed && this.#options.refundWhen && own.policies.length > 0)
      this.#refundAfter(exchange, record, own)
    return { decision, refusal: undefined, proceed }
  }

  /** Holds a request until its departure; false when its client left, which gives its place back. */
  async #depart(exchange: Exchange<Req, Res>, record: RequestRecord, decision: Decision): Promise<boolean> {
    const { departed, left } = this.#departures.wait(decision.delayMs)
    onEnd(exchange, record, left)
    // A response that is queued behind another on its connection is not told when that closes.
    if ((await departed) && !exchange.gone) return true
    this.#refund(decision)
    return false
  }

  #refundAfter(exchange: Exchange<Req, Res>, record: RequestRecord, decision: Decision): void {
    const { refundWhen } = this.#options
    onEnd(exchange, record, async (finished) => {
      try {
        if (finished && (await refundWhen?.(exchange.request, exchange.response)) === true)
          this.#refund(decision)
      } catch (error) {
        this.#limiter.warn(
          'SLUICE_REQUEST_FUNCTION',
          `option \`refundWhen\` of limiter ${show(this.#limiter.name)} threw ${show(error)}`,
        )
      }
    })
  }

  /** The reply is out already, so that a store that fails now is only told of. */
  #refund(decision: Decision): void {
    this.#limiter.refund(decision).catch((error) => this.#limiter.refundFailed(error))
  }

  async #decide(exchange: Exchange<Req>): Promise<Decision> {
    const {
      skip,
      plan: planOption,
      defaultPlan,
      cost: costOption,
      limit: limitOption,
      preflight,
      onPlanError,
    } = this.#options
    if (preflight !== 'count' && isPreflight(exchange)) return this.#limiter.skip('')
    const context = new Context(exchange, this.#misuse)
    if (skip && (await this.#ask('skip', skip, exchange, context)) === true) return this.#limiter.skip('')
    let planError: Error | undefined
    let answer: MaybePromise<string | undefined>
    if (typeof planOption === 'function') {
      const lookup: typeof planOption = (...asked) => {
        answer = planOption(...asked)
        return answer
      }
      try {
        context.plan = this.#planFrom(await this.#ask('plan', lookup, exchange, context))
      } catch (error) {
        context.plan = await this.#knownPlans.standIn(error, context, (asked) => this.#keyOf(exchange, asked))
        planError = error as Error
      }
    } else if (planOption !== undefined || defaultPlan !== undefined) {
      context.plan = this.#planFrom(planOption)
    }
    const request: LimitRequest = { key: await this.#keyOf(exchange, context) }
    if (context.plan !== undefined) request.plan = context.plan
    // Nothing given back is a mistake, and must not read as the default.
    if (costOption !== undefined) {
      request.cost =
        typeof costOption === 'function'
          ? ((await this.#ask('cost', costOption, exchange, context)) ?? Number.NaN)
          : costOption
    }
    if (limitOption) request.limit = (await this.#ask('limit', limitOption, exchange, context)) ?? Number.NaN
    if (planError) {
      // An answer that comes late still tells what the next request may need.
      if (isThenable(answer)) void this.#noteLate(request.key, answer)
      return this.#limiter.consumeWithoutPlan(request, planError, onPlanError === 'store-error')
    }
    this.#knownPlans.note(request.key, context.plan)
    return this.#limiter.consume(request)
  }

  async #noteLate(key: string, answer: Promise<string | undefined>): Promise<void> {
    try {
      this.#knownPlans.note(key, this.#planFrom(await answer))
    } catch {} // told of when the request was decided
  }

  #keyOf(exchange: Exchange<Req>, context: RequestContext): MaybePromise<string> {
    const key = this.#ask('key', this.#options.key, exchange, context)
    return isThenable(key) ? key.then((found) => found ?? ipKey(context.ip)) : (key ?? ipKey(context.ip))
  }

  /** Calls a function of the request; what it promises has to come within the budget. */
  #ask<T>(
    option: string,
    ask: RequestFunction<Req, T>,
    exchange: Exchange<Req>,
    context: RequestContext,
  ): MaybePromise<T> {
    try {
      const value = ask(exchange.request, context)
      return isThenable(value) ? this.#settled(option, value) : value
    } catch (error) {
      throw this.#failed(option, error)
    }
  }

  async #settled<T>(option: string, promise: PromiseLike<T>): Promise<T> {
    const { timeoutMs } = this.#limiter
    try {
      return await within(promise, timeoutMs, () =>
        this.#misfit(option, `did not settle within ${timeoutMs} ms`),
      )
    } catch (error) {
      throw this.#failed(option, error)
    }
  }

  #failed(option: string, error: unknown): SluiceError {
    return error instanceof SluiceError ? error : this.#misfit(option, 'threw', error)
  }

  #misfit(option: string, what: string, cause?: unknown): SluiceError {
    const message = `Option \`${option}\` of limiter ${show(this.#limiter.name)} ${what}`
    return new SluiceError('SLUICE_REQUEST_FUNCTION', message, { cause })
  }

  #planFrom(plan: unknown): string | undefined {
    const { defaultPlan } = this.#options
    if (this.#limiter.hasPlan(plan) || defaultPlan === undefined) return plan as string | undefined
    if (plan !== undefined) {
      this.#limiter.warn('SLUICE_UNKNOWN_PLAN', `no plan is called ${show(plan)}, so \`defaultPlan\` applies`)
    }
    return defaultPlan
  }

  #jitter(denial: Decision): Decision {
    return this.#options.retryJitterMs === 0
      ? denial
      : postpone(denial, Math.floor(this.#random() * (this.#options.retryJitterMs + 1)))
  }
}

/**
 * Writes the headers of all limiters that a request has passed, for a framework that has a response only after its
 * handler ran.
 * @param identity as in {@link Exchange.identity}
 */
export function writeHeaders(identity: object, fields: ResponseFields): void {
  const record = knownRecordOf(identity)
  if (record?.told) setHeaders(fields, record.parts, record.written, record.told)
}

/** {@link Exchange.onEnd} with one listener on the response for all limiters. */
function onEnd(exchange: Exchange, record: RequestRecord, listener: (finished: boolean) => void): void {
  if (record.ends) {
    record.ends.push(listener)
    return
  }
  const ends = [listener]
  record.ends = ends
  exchange.onEnd((finished) => {
    record.ends = undefined
    for (const end of ends) end(finished)
  })
}
