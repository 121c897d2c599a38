import { type Limiter, SluiceError } from '@sluice/core'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Enforce, enforce, type RateLimitOptions } from './enforce.js'
import { headersSent } from './exchange.js'

/** A hook that limits requests, for any of the stages `onRequest`, `preParsing`, `preValidation`, `preHandler`. */
export interface RateLimitHook {
  // Of request and reply only what all of Fastify's types of them share, so that it fits every server and route.
  (request: { readonly id: string }, reply: { readonly sent: boolean }): Promise<unknown>
  /** The limiter behind it, for `refund`, `reset` and the like. */
  readonly limiter: Limiter
}

/**
 * Makes a hook that limits requests: for an instance, a route or the not-found handler, whether or not
 * {@link rateLimitPlugin} is registered. A request that meets the same hook again is not charged again.
 *
 * A hook is to be passed on. Where another hook calls it, that one must return or await its result at once.
 * @throws SluiceError with the option, its value and what is expected
 * @example
 * app.addHook('onRequest', rateLimit({ limit: 100, window: '1m' }))
 * app.setNotFoundHandler({ preHandler: rateLimit({ name: 'unknown', limit: 10, window: '1m' }) }, notFound)
 */
export function rateLimit(options: RateLimitOptions): RateLimitHook {
  if (typeof (options as { register?: unknown } | undefined)?.register === 'function') {
    // Not thrown, since Fastify awaits a plugin, and would not catch that.
    return Promise.reject(
      misused('rateLimit is not a plugin. Expected app.register(rateLimitPlugin, options)'),
    ) as never
  }
  if (handlesRequest()) throw madeInHandler('rateLimit()')
  return hookOf(enforce(options))
}

/** What Fastify, or a hook of the user's, is given to call. */
export function hookOf(enforce: Enforce): RateLimitHook {
  // Not async, since its promise is looked at.
  function rateLimitHook(
    request: FastifyRequest,
    reply: FastifyReply,
    ...passed: unknown[]
  ): Promise<unknown> {
    if (!request.raw) {
      return Promise.reject(
        misused(
          'rateLimit() makes a hook, not a plugin. Expected app.addHook("onRequest", rateLimit(options)), or app.register(rateLimitPlugin, options)',
        ),
      )
    }
    const result = enforce(request, reply)
    // Fastify passes its callback too, and waits.
    if (passed.length === 0) whenDropped(result, () => refuseDropped(enforce.limiter, result, reply))
    return result
  }
  return Object.assign(rateLimitHook as RateLimitHook, { limiter: enforce.limiter })
}

/** The error for a hook that is used in a way in which it cannot limit. */
export function misused(message: string): SluiceError {
  return new SluiceError('SLUICE_BAD_HOOK', message)
}

/** The error for a hook that is made when there is nothing left to pass it to. */
export function madeInHandler(call: string): SluiceError {
  return new SluiceError(
    'SLUICE_MADE_IN_HANDLER',
    `${call} was called while requests are handled: it only makes a hook, whose counts start afresh. Expected it once, where hooks and routes are added, as in { preHandler: ${call} }`,
  )
}

/** Whether this is called from a hook or a handler, which the functions that Fastify calls them with tell. */
function handlesRequest(): boolean {
  return /\bat (hookIterator|preParsingHookRunner|preHandlerCallbackInner)\b/.test(new Error().stack ?? '')
}

const dropped =
  'The hook of rateLimit() was called, and nobody waits for its result, so that it limits nothing. Expected `return limit(request, reply)`, or the hook itself in place of the function that calls it'

/** Fails a request that was about to go on without waiting for its decision. */
function refuseDropped(limiter: Limiter, result: Promise<unknown>, reply: FastifyReply): void {
  result.catch(() => {}) // one error is enough
  const error = misused(dropped)
  if (headersSent(reply)) limiter.warn(error.code, dropped)
  else reply.send(error)
}

/**
 * Calls back unless somebody waits for the promise by the end of the turn in which it was made: `await`, `return` and
 * `then` each look at one of these two properties at once.
 */
function whenDropped(promise: Promise<unknown>, then: () => void): void {
  let awaited = false
  for (const property of ['constructor', 'then'] as const) {
    const value = promise[property]
    const get = () => {
      awaited = true
      return value
    }
    void Object.defineProperty(promise, property, { get })
  }
  queueMicrotask(() => {
    if (!awaited) then()
  })
}
