import { STATUS_CODES } from 'node:http'
import {
  badOption,
  type RateLimitOptions as CoreOptions,
  type Decision,
  type Exchange,
  HttpLimiter,
  joinHeader,
  type Limiter,
  onResponseEnd,
} from '@sluice/core'
import type { Context, Middleware, Next } from 'koa'

export * from '@sluice/core/user'

declare module 'koa' {
  interface DefaultState {
    /** The decision of all limiters that the request has passed so far. */
    rateLimit?: Decision
  }
}

/** Options of {@link rateLimit}. */
export type RateLimitOptions = CoreOptions<Context, [ctx: Context, next: Next], Context['response']> & {
  /**
   * Whether a denied request is thrown, as a {@link RateLimitError}, in place of a reply. Not beside `onLimited`, nor
   * with a `message` that is no text. Default false.
   */
  throws?: boolean
}

/** What is thrown for a denied request with `throws: true`: what `ctx.throw` makes, with the decision. */
export interface RateLimitError extends Error {
  /** 429 or the option `statusCode`; 503 for a store that failed. */
  status: number
  statusCode: number
  /** The message is meant for the client. */
  expose: true
  /** Every header that the limiter set: those of the quota, `Retry-After`, `Cache-Control`. */
  headers: Record<string, string>
  decision: Decision
}

/** A middleware of Koa that limits requests. */
export type RateLimitMiddleware = Middleware & {
  /** What it counts in, for `reset`, `refund`, `block`, `peek` and `close`. */
  readonly limiter: Limiter
}

/**
 * Makes a middleware that limits requests, for an application, a router or a route. A request that meets the same
 * middleware again is not charged again.
 * @throws SluiceError with the option, its value and what is expected
 * @example
 * app.use(rateLimit({ limit: 100, window: '1m' }))
 */
export function rateLimit(options: RateLimitOptions): RateLimitMiddleware {
  const { throws, httpOptions } = readOptions(options)
  const http = new HttpLimiter(httpOptions)
  let mountChecked = false
  const middleware: Middleware = async function rateLimitMiddleware(ctx, next) {
    if (!mountChecked) {
      mountChecked = true
      if (missesOtherCases(ctx, middleware)) {
        http.limiter.warn('SLUICE_CASE_SENSITIVE_MOUNT', caseSensitiveMount)
      }
    }
    const headers: Record<string, string> | undefined = throws ? {} : undefined
    const { decision, refusal, proceed } = await http.handle(new KoaExchange(ctx, headers))
    ctx.state.rateLimit = decision
    if (proceed) return next()
    if (!refusal) return
    if (ctx.headerSent) return
    // Koa drops the headers of a response that fails, but for those of the error.
    if (headers) return ctx.throw(refusal.status, refusal.text, { expose: true, headers, decision })
    if (httpOptions.onLimited) return httpOptions.onLimited(ctx, next, decision)
    ctx.status = refusal.status
    // Before the body, which otherwise brings a type of its own.
    ctx.set('Content-Type', refusal.contentType)
    ctx.body = refusal.body
  }
  return Object.assign(middleware, { limiter: http.limiter })
}

/** Tells the option of Koa from those of all adapters. */
function readOptions(options: RateLimitOptions) {
  const { throws = false, ...httpOptions } = options ?? {}
  const { onLimited, message, statusCode = 429 } = httpOptions
  if (typeof throws !== 'boolean') throw badOption('throws', throws, 'true or false')
  if (throws && onLimited) {
    throw badOption(
      'onLimited',
      onLimited,
      'nothing beside `throws`, which leaves the reply to the error handler',
    )
  }
  if (throws && typeof message === 'object') {
    throw badOption('message', message, 'text beside `throws`, where it is the message of the error')
  }
  if (throws && !STATUS_CODES[statusCode]) {
    throw badOption(
      'statusCode',
      statusCode,
      'a registered status beside `throws`, since Koa makes 500 of others',
    )
  }
  return { throws, httpOptions }
}

/** What `ctx.router` shows of a router of @koa/router. */
interface RouterOfContext {
  readonly opts: { readonly sensitive?: boolean }
  readonly stack: readonly { readonly stack: readonly unknown[]; readonly regexp: RegExp }[]
}

const caseSensitiveMount =
  'router.use(limiter) of a router with a prefix runs for that spelling of the prefix only, while its routes match any case; use router.use("{/*rest}", limiter), or the option `sensitive` of the router'

/** Whether a router of @koa/router leads some requests past the middleware to the routes that it stands before. */
function missesOtherCases(ctx: Context, middleware: Middleware): boolean {
  const router = ctx.router as RouterOfContext | undefined
  const layer = router?.stack.find(({ stack }) => stack.includes(middleware))
  return !!layer && !router?.opts.sensitive && !layer.regexp.ignoreCase && /[a-z]/i.test(layer.regexp.source)
}

// A class, since an object with getters of its own costs more than the decision.
class KoaExchange implements Exchange<Context, Context['response']> {
  readonly #written: Record<string, string> | undefined

  /** @param written collects the headers that the limiter sets */
  constructor(
    readonly request: Context,
    written: Record<string, string> | undefined,
  ) {
    this.#written = written
  }

  get response(): Context['response'] {
    return this.request.response
  }

  get identity(): Context['req'] {
    return this.request.req
  }

  get method(): string {
    return this.request.method
  }

  get ip(): string {
    return this.request.ip
  }

  get trustsEveryProxy(): boolean {
    const { proxy, maxIpsCount, proxyIpHeader } = this.request.app
    // Another header is one that a proxy sets anew, not one to which each adds.
    return proxy && maxIpsCount === 0 && proxyIpHeader.toLowerCase() === 'x-forwarded-for'
  }

  get trustsNoProxy(): boolean {
    return !this.request.app.proxy
  }

  get gone(): boolean {
    return this.request.req.socket?.destroyed === true
  }

  get headersSent(): boolean {
    return this.request.headerSent
  }

  header(name: string): string | undefined {
    return joinHeader(this.request.req.headers[name])
  }

  responseHeader(name: string): string | undefined {
    return joinHeader(this.request.res.getHeader(name))
  }

  setResponseHeader(name: string, value: string): void {
    if (this.#written) this.#written[name] = value
    // Not `ctx.set`, which prepares for any kind of value at the price of three arrays.
    this.request.res.setHeader(name, value)
  }

  onEnd(listener: (finished: boolean) => void): void {
    onResponseEnd(this.request.res, listener)
  }
}
