import type { Decision } from './decision.js'
import type { ErrorCode } from './errors.js'

/** What a limiter tells its `onEvent` listener; metrics and logs hang on it. */
export type SluiceEvent =
  /** A request was decided. */
  | { readonly type: 'decision'; readonly limiter: string; readonly decision: Decision }
  /** The store did not answer, and the request was decided by `onStoreError`; follows the cause of each such decision. */
  | { readonly type: 'store-error'; readonly limiter: string; readonly error: Error }
  /**
   * The plan of a request could not be found, and `onPlanError` chose in its place: `plan`, or nobody's. Precedes the
   * decision. Where the error is thrown instead, there is no event.
   */
  | {
      readonly type: 'plan-error'
      readonly limiter: string
      readonly key: string
      readonly plan: string | undefined
      readonly error: Error
    }
  /**
   * The store stopped answering: at least half of its last calls failed. Told once to each listener, with the limiters
   * of its that are concerned and the failure that made it so.
   */
  | { readonly type: 'store-down'; readonly limiters: readonly string[]; readonly error: Error }
  /**
   * The store answers again, and has for a second: how long it was down, and how many requests of all limiters on it
   * were decided without it meanwhile.
   */
  | {
      readonly type: 'store-up'
      readonly limiters: readonly string[]
      readonly downMs: number
      readonly degraded: number
    }
  /** Something is probably not as meant; reported once for each cause. */
  | { readonly type: 'warning'; readonly limiter: string; readonly code: ErrorCode; readonly message: string }

/** Where warnings go when nobody listens to events: `console` fits. */
export interface Logger {
  /** Takes one line without its end. */
  warn(message: string): void
}
