export type { Charge } from './algorithms/algorithm.js'
export type { BucketOptions } from './algorithms/bucket.js'
export type { FixedWindowOptions } from './algorithms/fixed-window/fixed-window.js'
export { type Algorithm, algorithmNames } from './algorithms/index.js'
export type { LeakyBucketOptions } from './algorithms/leaky-bucket/leaky-bucket.js'
export type { SlidingWindowRingOptions } from './algorithms/sliding-window-ring/sliding-window-ring.js'
export type { ClockUs } from './clock.js'
export type { Decision, PolicyDecision, Reason } from './decision.js'
export type { Duration } from './duration.js'
export { decide, type Outcome } from './engine.js'
export {
  badOption,
  type ErrorCode,
  errorCodes,
  refuseUnknownOptions,
  SluiceError,
  type SluiceErrorOptions,
  show,
} from './errors.js'
export type { Logger, SluiceEvent } from './events.js'
export type { FailureMode, OnStoreError } from './failure/failure-mode.js'
export {
  type Exchange,
  type Extractor,
  joinHeader,
  type MaybePromise,
  onResponseEnd,
  type RequestContext,
} from './http/exchange.js'
export {
  type ByIpOptions,
  byApiKey,
  byHeader,
  byIp,
  byPlan,
  byUser,
  compose,
  type PlanLookup,
  planByApiKey,
} from './http/extractors.js'
export type { HeaderSet, LegacyReset } from './http/headers.js'
export { HttpLimiter, type HttpOutcome } from './http/http-limiter.js'
export type { HttpOptions, RateLimitOptions, RequestFunction } from './http/http-options.js'
export type { Refusal } from './http/refusal.js'
export { Limiter, type LimitRequest } from './limiter.js'
export type { LimiterOptions } from './limiter-options.js'
export { MemoryStore, type MemoryStoreOptions } from './memory-store.js'
export { definePlans, type Plan, type Plans } from './plans.js'
export { type Policy, type ResolvedPolicy, resolvePolicy } from './policy.js'
export type { Check, ConsumeOptions, Refund, Store, Verdict } from './store.js'
