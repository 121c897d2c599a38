import { type RateLimitOptions as CoreOptions, HttpLimiter, type Limiter } from '@sluice/core'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { FastifyExchange, headersSent } from './exchange.js'

/** Options of a limiter of requests: those of a limiter and its policies, or a `limiter`, and those of HTTP. */
export type RateLimitOptions = CoreOptions<
  FastifyRequest,
  [request: FastifyRequest, reply: FastifyReply],
  FastifyReply
>

/** Lets a request go on, or answers it; settles when one of them is decided. */
export interface Enforce {
  (request: FastifyRequest, reply: FastifyReply): Promise<unknown>
  readonly limiter: Limiter
}

/**
 * Makes the function that limits requests.
 * @throws SluiceError with the option, its value and what is expected
 */
export function enforce(options: RateLimitOptions): Enforce {
  const limiter = new HttpLimiter(options)

  async function rateLimitHook(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const { decision, refusal, proceed } = await limiter.handle(new FastifyExchange(request, reply))
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
    if (!reply.sent) await reply
    // A client that left before the reply went out would otherwise let the request go on.
    if (!reply.sent) reply.hijack()
    return reply
  }

  return Object.assign(rateLimitHook, { limiter: limiter.limiter })
}
