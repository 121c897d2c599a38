export type { Refusal } from '@sluice/core'
export * from '@sluice/core/user'
export { type ClassOrMethodDecorator, RateLimit, SkipRateLimit } from './decorators.js'
export { type Denial, type DenialDetails, RateLimitException } from './exceptions.js'
export { type ContextExchange, requestOf } from './exchange.js'
export type { Handler, HandlerClass } from './handler-name.js'
export type { EnforcedLimit } from './limit.js'
export type { RateLimitModuleOptions, RateLimitOptions, RateLimitStatement } from './options.js'
export { RateLimitFilter } from './rate-limit-filter.js'
export { RateLimitGuard } from './rate-limit-guard.js'
export {
  RATE_LIMIT_KEY,
  RATE_LIMIT_PLAN,
  RATE_LIMIT_REPLY,
  RateLimitModule,
  type RateLimitModuleAsyncOptions,
  type RateLimitModuleExtras,
} from './rate-limit-module.js'
export { RateLimits } from './rate-limits.js'
