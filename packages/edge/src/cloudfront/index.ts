export {
  type CloudFrontFunction,
  type CloudFrontFunctionOptions,
  cloudFrontFunction,
} from './cloudfront-function.js'
export type {
  CloudFrontHeaders,
  CloudFrontRequest,
  CloudFrontResponse,
  ViewerRequestEvent,
} from './events.js'
export type { CountedPolicies } from './generated-from.js'
export { type KeyValueChange, type KeyValuePair, keyValueChanges } from './key-value-changes.js'
export { type ViewerRequestHandler, type ViewerRequestOptions, viewerRequest } from './viewer-request.js'
export { type WafKey, type WafOptions, type WafRule, type WafRules, wafRules } from './waf-rules.js'
