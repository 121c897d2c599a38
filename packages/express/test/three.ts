import { MemoryStore, type RateLimitOptions, rateLimit } from '../src/index.js'

/** A limit of 3 requests, on a clock that stands still. */
export const three = (options: Partial<RateLimitOptions> = {}) =>
  rateLimit({
    store: new MemoryStore({ nowUs: () => 1.8e15 }),
    algorithm: 'fixed-window',
    limit: 3,
    window: '1m',
    ...options,
  })
