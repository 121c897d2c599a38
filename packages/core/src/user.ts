// What those who use a limiter need, whatever the framework: every adapter passes all of it on.
export type { BucketOptions } from './algorithms/bucket.js'
export type { FixedWindowOptions } from './algorithms/fixed-window/fixed-window.js'
export { type Algorithm, algorithmNames } from './algorithms/index.js'
export type { LeakyBucketOptions } from './algorithms/leaky-bucket/leaky-bucket.js'
export type { SlidingWindowRingOptions } from './algorithms/sliding-window-ring/sliding-window-ring.js'
export type { ClockUs } from './clock.js'
export type { Decision, PolicyDecision, Reason } from './decision.js'
export type { Duration } from './duration.js'
export { type ErrorCode, errorCodes, SluiceError, type SluiceErrorOptions } from './errors.js'
export type { Logger, SluiceEvent } from './events.js'
export type { FailureMode, OnStoreError } from './failure/failure-mode.js'
export type { Extractor, MaybePromise, RequestContext } from './http/exchange.js'
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
export type { HttpOptions, RequestFunction } from './http/http-options.js'
export { type HttpReply, type HttpReplyOptions, httpReply } from './http/http-reply.js'
export type { OnPlanError } from './http/plan-error.js'
export type { LimitRequest } from './limit-request.js'
export { Limiter } from './limiter.js'
export type { LimiterOptions } from './limiter-options.js'
export { MemoryStore, type MemoryStoreOptions } from './memory-store.js'
export { definePlans, type Plan, type Plans } from './plans.js'
export type { Policy, ResolvedPolicy } from './policy.js'
export {
  type CallFunction,
  type DeniedError,
  type RateLimitedDecorator,
  type RateLimitedOptions,
  rateLimited,
} from './rate-limited.js'
export type { LeaseTerms } from './reservation/lease-terms.js'
export type { Reserve } from './reservation/reserve.js'
export type { Check, ConsumeOptions, Refund, Store, Verdict } from './store.js'
