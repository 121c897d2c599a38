import type { Decision } from '@sluice/core'
import type { RateLimitOptions } from './enforce.js'
import type { RouteRateLimit } from './plugin-limits.js'
import type { RateLimitHook } from './rate-limit.js'

export * from '@sluice/core/user'

export type { RateLimitOptions } from './enforce.js'
export { type RateLimitPluginOptions, rateLimitPlugin } from './plugin.js'
export type { RouteRateLimit, Stage } from './plugin-limits.js'
export { type RateLimitHook, rateLimit } from './rate-limit.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The decision of all limiters that the request has passed so far. */
    rateLimit?: Decision
  }
  interface FastifyContextConfig {
    /** The route's own limits, or false to take it out of the global ones; read by `rateLimitPlugin`. */
    rateLimit?: RouteRateLimit | false
  }
  interface FastifyInstance {
    /**
     * Makes a hook as `rateLimit()` does, with what `rateLimitPlugin` lets routes inherit. The application closes its
     * limiter. Throws `SLUICE_MADE_IN_HANDLER` once the application has started.
     */
    rateLimit(options: RateLimitOptions): RateLimitHook
  }
}
