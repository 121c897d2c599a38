export {
  DurableObjectStore,
  type DurableObjectStoreOptions,
  type ObjectAnswer,
  type ObjectNamespace,
  type ObjectStub,
} from './durable-object-store.js'
export {
  type RateLimitBinding,
  type RateLimitBindingOptions,
  withRateLimitBinding,
} from './rate-limit-binding.js'
export { type ObjectStorage, RateLimitObject } from './rate-limit-object.js'
export { wranglerConfig } from './wrangler-config.js'
