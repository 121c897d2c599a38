import { addUp, type Decision } from '../decision.js'
import { formatDuration } from '../duration.js'
import { SluiceError, show } from '../errors.js'
import { within } from '../failure/within.js'
import type { Limiter, LimitRequest } from '../limiter.js'
import { Departures } from './departures.js'
import type { Exchange, MaybePromise, RequestContext } from './exchange.js'
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
import { type Refusal, refuse } from './refusal.js'
import { type RequestPart, setHeaders } from './response-headers.js'

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
  /** Who wants to know of the response's end; one listener on the response serves all. */
  ends: ((finished: boolean) => void)[] | undefined
}

/** Clients and proxies seldom keep a connection open for longer. */
const longestWaitMs = 60_000

const records = new WeakMap<object, RequestRecord>()

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
  async handle(exchange: Exchange<Req, Res>): Promise<HttpOutcome> {
    this.#misuse.request()
    let record = records.get(exchange.identity)
    if (!record) {
      record = { parts: [], outcomes: new Map(), written: new Map(), ends: undefined }
      records.set(exchange.identity, record)
    }
    const earlier = record.outcomes.get(this as never)
    if (earlier) {
      // Denied, and yet here again: a reply of the user's own has waved the request on.
      const { proceed, refusal } = await earlier
      return { decision: addUp(record.parts), refusal: undefined, proceed: proceed || refusal !== undefined }
    }
    const outcome = this.#limit(exchange, record)
    record.outcomes.set(this as never, outcome)
    return outcome
  }

  async #limit(exchange: Exchange<Req, Res>, record: RequestRecord): Promise<HttpOutcome> {
    if (exchange.gone && exchange.ip === undefined) {
      // Its address went with it: there is nobody to count, nor to serve.
      return { decision: this.#limiter.skip(''), refusal: undefined, proceed: false }
    }
    const own = await this.#decide(exchange)
    record.parts.push({ limiter: this.#limiter.name, decision: own, writers: this.#options.writers })
    const decision = addUp(record.parts)
    const told = decision.allowed ? decision : this.#jitter(decision)
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
    const addressOf = (): string | undefined => this.#addressOf(exchange)
    const context = {
      get ip() {
        return addressOf()
      },
      plan: undefined as string | undefined,
      header: (name: string) => exchange.header(name),
    }
    if (skip && (await this.#ask('skip', skip, exchange, context)) === true) return this.#limiter.skip('')
    const keyOf = async (asked: RequestContext): Promise<string> =>
      (await this.#ask('key', this.#options.key, exchange, asked)) ?? ipKey(asked.ip)
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
        context.plan = await this.#knownPlans.standIn(error, context, keyOf)
        planError = error as Error
      }
    } else if (planOption !== undefined || defaultPlan !== undefined) {
      context.plan = this.#planFrom(planOption)
    }
    const request: LimitRequest = { key: await keyOf(context) }
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

  #addressOf(exchange: Exchange<Req>): string | undefined {
    this.#misuse.address(exchange)
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

/** Promises of other libraries and realms too. */
function isThenable<T>(value: MaybePromise<T>): value is Promise<T> {
  return typeof (value as Promise<T> | undefined)?.then === 'function'
}
