import {
  type RateLimitOptions as CoreOptions,
  type Decision,
  type Exchange,
  HttpLimiter,
  joinHeader,
  onResponseEnd,
} from '@sluice/core'
import type { Context, Middleware, Next } from 'koa'

export {
  type Algorithm,
  type ByIpOptions,
  byApiKey,
  byHeader,
  byIp,
  byPlan,
  byUser,
  compose,
  type Decision,
  type Duration,
  definePlans,
  type ErrorCode,
  type Extractor,
  type HeaderSet,
  type LegacyReset,
  Limiter,
  type LimiterOptions,
  type LimitRequest,
  type Logger,
  MemoryStore,
  type MemoryStoreOptions,
  type OnStoreError,
  type Plan,
  type PlanLookup,
  type Plans,
  type Policy,
  type PolicyDecision,
  planByApiKey,
  type Reason,
  type RequestContext,
  type RequestFunction,
  SluiceError,
  type SluiceEvent,
  type Store,
} from '@sluice/core'

declare module 'koa' {
  interface DefaultState {
    /** The decision of all limiters that the request has passed so far. */
    rateLimit?: Decision
  }
}

/** Options of {@link rateLimit}. */
export type RateLimitOptions = CoreOptions<Context, [ctx: Context, next: Next], Context['response']>

/**
 * Makes a middleware that limits requests, for an application or a route. A request that meets the same middleware
 * again is not charged again.
 * @throws SluiceError with the option, its value and what is expected
 * @example
 * app.use(rateLimit({ limit: 100, window: '1m' }))
 */
export function rateLimit(options: RateLimitOptions): Middleware {
  const limiter = new HttpLimiter(options)
  return async function rateLimitMiddleware(ctx, next) {
    const { decision, refusal, proceed } = await limiter.handle(exchangeOf(ctx))
    ctx.state.rateLimit = decision
    if (proceed) return next()
    if (!refusal) return
    if (ctx.headerSent) return
    if (options.onLimited) return options.onLimited(ctx, next, decision)
    ctx.status = refusal.status
    // Before the body, which otherwise brings a type of its own.
    ctx.set('Content-Type', refusal.contentType)
    ctx.body = refusal.body
  }
}

function exchangeOf(ctx: Context): Exchange<Context, Context['response']> {
  return {
    request: ctx,
    response: ctx.response,
    identity: ctx.req,
    method: ctx.method,
    get ip() {
      return ctx.ip
    },
    get trustsEveryProxy() {
      return ctx.app.proxy && ctx.app.maxIpsCount === 0
    },
    get gone() {
      return ctx.req.socket?.destroyed === true
    },
    get headersSent() {
      return ctx.headerSent
    },
    header: (name) => joinHeader(ctx.req.headers[name]),
    responseHeader: (name) => joinHeader(ctx.res.getHeader(name)),
    setResponseHeader: (name, value) => ctx.set(name, value),
    onEnd: (listener) => onResponseEnd(ctx.res, listener),
  }
}
