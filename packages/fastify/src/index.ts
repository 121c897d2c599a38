import {
  type RateLimitOptions as CoreOptions,
  type Decision,
  type Exchange,
  HttpLimiter,
  joinHeader,
  onResponseEnd,
  SluiceError,
} from '@sluice/core'
import type { FastifyReply, FastifyRequest, onRequestAsyncHookHandler } from 'fastify'

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

declare module 'fastify' {
  interface FastifyRequest {
    /** The decision of all limiters that the request has passed so far. */
    rateLimit?: Decision
  }
}

/** Options of {@link rateLimit}. */
export type RateLimitOptions = CoreOptions<
  FastifyRequest,
  [request: FastifyRequest, reply: FastifyReply],
  FastifyReply
>

/**
 * Makes an `onRequest` hook that limits requests, for an instance or a route. A request that meets the same hook
 * again is not charged again.
 * @throws SluiceError with the option, its value and what is expected
 * @example
 * app.addHook('onRequest', rateLimit({ limit: 100, window: '1m' }))
 */
export function rateLimit(options: RateLimitOptions): onRequestAsyncHookHandler {
  const limiter = new HttpLimiter(options)
  return async function rateLimitHook(request, reply) {
    if (!request.raw) {
      throw new SluiceError(
        'SLUICE_BAD_OPTION',
        'rateLimit() of Fastify makes a hook, not a plugin. Expected app.addHook("onRequest", rateLimit(...))',
      )
    }
    const { decision, refusal, proceed } = await limiter.handle(exchangeOf(request, reply))
    request.rateLimit = decision
    if (proceed) return
    if (!refusal) {
      reply.hijack()
      return reply
    }
    if (!headersSent(reply)) {
      if (options.onLimited) {
        const body = await options.onLimited(request, reply, decision)
        if (body !== undefined && !reply.sent) reply.send(body)
      }
      // As bytes, since Fastify adds a charset to JSON text.
      else reply.code(refusal.status).type(refusal.contentType).send(Buffer.from(refusal.body))
    }
    await reply
    // A client that left before the reply went out would otherwise let the request go on.
    if (!reply.sent) reply.hijack()
    return reply
  }
}

function headersSent(reply: FastifyReply): boolean {
  return reply.sent || reply.raw.headersSent
}

function exchangeOf(request: FastifyRequest, reply: FastifyReply): Exchange<FastifyRequest, FastifyReply> {
  return {
    request,
    response: reply,
    identity: request.raw,
    method: request.method,
    get ip() {
      return request.ip
    },
    get trustsEveryProxy() {
      return trustsEveryProxy(request)
    },
    get gone() {
      return request.raw.socket?.destroyed === true
    },
    get headersSent() {
      return headersSent(reply)
    },
    header: (name) => joinHeader(request.headers[name]),
    responseHeader: (name) => joinHeader(reply.getHeader(name)),
    setResponseHeader: (name, value) => void reply.header(name, value),
    onEnd: (listener) => onResponseEnd(reply.raw, listener),
  }
}

/** Fastify does not show its option `trustProxy`, so this asks whose address it would take after many proxies. */
function trustsEveryProxy(request: FastifyRequest): boolean {
  const hops = Array.from({ length: 100 }, (_, i) => `192.0.2.${i}`)
  const raw = { headers: { 'x-forwarded-for': hops.join(', ') }, socket: { remoteAddress: '192.0.2.100' } }
  return Object.create(request, { raw: { value: raw } }).ip === hops[0]
}
