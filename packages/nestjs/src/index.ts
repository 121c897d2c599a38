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
  type OnPlanError,
  type OnStoreError,
  type Plan,
  type PlanLookup,
  type Plans,
  type Policy,
  type PolicyDecision,
  planByApiKey,
  type Reason,
  type Refusal,
  type RequestContext,
  type RequestFunction,
  SluiceError,
  type SluiceEvent,
  type Store,
} from '@sluice/core'
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
