// What those who make a store or an adapter need beside it.
export type { Charge } from './algorithms/algorithm.js'
export { base64Url } from './base64-url.js'
export { checkLogger } from './check-logger.js'
export { checkWhole } from './check-whole.js'
export { decide, type Outcome } from './engine.js'
export { badOption, reading, refuseUnknownOptions, show } from './errors.js'
export { groupBy } from './group-by.js'
export { type Exchange, joinHeader, onResponseEnd } from './http/exchange.js'
export { HttpLimiter, type HttpOutcome, writeHeaders } from './http/http-limiter.js'
export type { RateLimitOptions } from './http/http-options.js'
export {
  countingOptions,
  findGroup,
  fitName,
  inheritOptions,
  pickOptions,
  tellingOptions,
  withName,
} from './http/inherit.js'
export type { Refusal } from './http/refusal.js'
export { checkName, type PolicyData, resolvePolicy } from './policy.js'
export { policyFrom } from './policy-from.js'
export { refundsOf } from './refunds-of.js'
export { remembering } from './remembering.js'
export * from './user.js'
