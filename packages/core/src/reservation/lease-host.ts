import type { Store } from '../store.js'

/** What became of the units that leases charged: at any moment charged = admitted + held + returned + expired. */
export interface LeaseTally {
  charged: number
  admitted: number
  returned: number
  expired: number
}

/** What a lease needs of its surroundings. */
export interface LeaseHost {
  readonly store: Store
  readonly tally: LeaseTally
  /** A monotonic clock in milliseconds. */
  nowMs(): number
  /** How many processes share the store; undefined while that is not known. */
  nodes(): number | undefined
}
