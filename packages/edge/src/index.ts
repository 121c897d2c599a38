import {
  badOption,
  type RateLimitOptions as CoreOptions,
  type Decision,
  type Exchange,
  HttpLimiter,
  type Limiter,
  type MaybePromise,
  SluiceError,
  show,
} from '@sluice/core'
import {
  type AddressFunction,
  checkAddress,
  isOnCloudflare,
  runtimeAddress,
  trustsClient,
} from './address.js'
import { type HeaderFields, replyOf } from './response.js'
import { type Visit, visitOf } from './visit.js'

export * from '@sluice/core/user'
export { type AddressFunction, forwardedFor } from './address.js'
export type { HeaderFields } from './response.js'

/** Options of {@link withRateLimit}. Functions of the request get the `Request`. */
export type RateLimitOptions<Rest extends unknown[] = unknown[]> = Omit<
  CoreOptions<Request, [request: Request, ...rest: Rest], Response>,
  'onLimited'
> & {
  /**
   * Replies to a denied request in place of Sluice, which adds its headers; status (429, or 503 when `decision.reason`
   * is `store-error`) and body are up to it. Undefined leaves the reply to Sluice. It gets what the handler gets, and
   * the decision.
   */
  onLimited?: (
    request: Request,
    ...args: [...rest: Rest, decision: Decision]
  ) => MaybePromise<Response | undefined>
  /**
   * Tells the client's address, of what the handler gets: `forwardedFor(1)` behind one proxy. Default: what the runtime
   * knows, on Cloudflare, Deno, Bun, and with `@hono/node-server`; elsewhere there is none, and a request that is
   * counted by it fails with `SLUICE_NO_ADDRESS`. Never take it from a header that clients can send.
   */
  address?: AddressFunction<Rest>
  /** Other headers of Sluice's own reply to a denied request, such as those of CORS. Default: none. */
  refusalHeaders?: HeaderFields | ((request: Request, ...rest: Rest) => HeaderFields)
}

/** A handler of a Fetch runtime: `Deno.serve(handler)`, `export default { fetch: handler }`. */
export type FetchHandler<Rest extends unknown[] = unknown[]> = (
  request: Request,
  ...rest: Rest
) => MaybePromise<Response>

/** A handler that limits its requests. */
export type LimitedHandler<Rest extends unknown[] = unknown[]> = ((
  request: Request,
  ...rest: Rest
) => Promise<Response>) & {
  /** What it counts in, for `reset`, `refund`, `block`, `peek` and `close`. */
  readonly limiter: Limiter
}

/** One limiter for any number of handlers, whose requests it counts together. */
export type RateLimit<Rest extends unknown[] = unknown[]> = (<Args extends Rest>(
  handler: FetchHandler<Args>,
) => LimitedHandler<Args>) & { readonly limiter: Limiter }

const decisions = new WeakMap<Request, Decision>()

/** The decision of all limiters that a request has passed so far; undefined for one that has passed none. */
export function decisionOf(request: Request): Decision | undefined {
  return decisions.get(request)
}

/**
 * Limits the requests of a handler, in any runtime that has `Request` and `Response`.
 * @throws SluiceError with the option, its value and what is expected
 * @example
 * Deno.serve(withRateLimit((request) => new Response('ok'), { limit: 100, window: '1m' }))
 */
export function withRateLimit<Rest extends unknown[]>(
  handler: FetchHandler<Rest>,
  options: RateLimitOptions<Rest>,
): LimitedHandler<Rest> {
  checkHandler(handler)
  return rateLimit<Rest>(options)(handler)
}

/**
 * Makes one limiter for several handlers, each of which it is called with. A request that meets it again, in a handler
 * inside of another, is not charged again.
 * @throws SluiceError with the option, its value and what is expected
 * @example
 * const limited = rateLimit({ limit: 100, window: '1m' })
 * const routes = { '/search': limited(search), '/list': limited(list) }
 */
export function rateLimit<Rest extends unknown[] = unknown[]>(
  options: RateLimitOptions<Rest>,
): RateLimit<Rest> {
  const { address, refusalHeaders, httpOptions } = readOptions(options)
  const { onLimited, refundWhen } = httpOptions
  const http = new HttpLimiter<Request, [request: Request, ...rest: Rest], Response>(httpOptions)
  const { limiter } = http

  function limit<Args extends Rest>(handler: FetchHandler<Args>): LimitedHandler<Args> {
    checkHandler(handler)
    const limited = (request: Request, ...rest: Args): Promise<Response> => {
      const visit = visitOf(request)
      return visit.pass(refundWhen !== undefined, async () => {
        const exchange = exchangeOf(request, rest, visit, limiter.name, address)
        const { decision, refusal, proceed } = await http.handle(exchange)
        decisions.set(request, decision)
        if (proceed) return handler(request, ...rest)
        // Nobody reads it.
        if (!refusal || visit.gone) return new Response(null, { status: 499 })
        const own = await onLimited?.(request, ...(rest as Rest), decision)
        if (own) return own
        const others =
          typeof refusalHeaders === 'function' ? refusalHeaders(request, ...rest) : refusalHeaders
        return replyOf(refusal, request.method === 'HEAD', others)
      })
    }
    return Object.assign(limited, { limiter })
  }
  return Object.assign(limit, { limiter })
}

/** Tells the options of Fetch from those of all adapters. */
function readOptions<Rest extends unknown[]>(options: RateLimitOptions<Rest>) {
  const { address = runtimeAddress, refusalHeaders, ...httpOptions } = options ?? {}
  if (typeof address !== 'function')
    throw badOption('address', address, 'a function such as `forwardedFor(1)`')
  if (typeof refusalHeaders !== 'function') {
    try {
      new Headers(refusalHeaders)
    } catch {
      throw badOption(
        'refusalHeaders',
        refusalHeaders,
        'headers, as `new Headers()` takes them, or a function',
      )
    }
  }
  if (refusalHeaders !== undefined && httpOptions.onLimited) {
    throw badOption('refusalHeaders', refusalHeaders, 'nothing beside `onLimited`, which replies itself')
  }
  return { address, refusalHeaders, httpOptions }
}

function checkHandler(handler: unknown): void {
  if (typeof handler !== 'function') {
    throw badOption('handler', handler, 'a function from a Request to a Response')
  }
}

/** The request as the core sees it. Its headers are written when there is a response: see {@link visitOf}. */
function exchangeOf<Rest extends unknown[]>(
  request: Request,
  rest: Rest,
  visit: Visit,
  limiter: string,
  address: AddressFunction<Rest>,
): Exchange<Request, Response> {
  const find = (): unknown => {
    try {
      return address(request, ...rest)
    } catch (cause) {
      const message = `Option \`address\` of limiter ${show(limiter)} threw`
      throw new SluiceError('SLUICE_REQUEST_FUNCTION', message, { cause })
    }
  }
  return {
    request,
    get response() {
      return visit.response as Response
    },
    identity: request,
    method: request.method,
    get ip() {
      const found = find()
      // Of a connection that is closed a runtime may not know it any more.
      return found === undefined && visit.gone ? undefined : checkAddress(limiter, found)
    },
    get trustsEveryProxy() {
      return trustsClient(address, request, find())
    },
    get trustsNoProxy() {
      return address === runtimeAddress && !isOnCloudflare(request)
    },
    get gone() {
      return visit.gone
    },
    headersSent: true,
    header: (name) => request.headers.get(name) ?? undefined,
    responseHeader: () => undefined,
    setResponseHeader: () => {},
    onEnd: (listener) => visit.onEnd(listener),
  }
}
