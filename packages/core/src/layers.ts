import { DenyCache } from './deny-cache/deny-cache.js'
import { guardOf } from './failure/guarded-store.js'
import { Heartbeat } from './heartbeat.js'
import { Reservation } from './reservation/reservation.js'
import type { Store } from './store.js'

/**
 * What stands between the limiters of one name and the shared store they count in:
 * limiter -> deny cache -> reservation -> guard -> store.
 */
export class Layers {
  /** The outermost of them, which limiters ask. */
  readonly store: Store
  readonly heartbeat: Heartbeat
  readonly #reservation: Reservation

  /** @param encodedName the limiter's, as in keys */
  constructor(shared: Store, encodedName: string) {
    const guard = guardOf(shared)
    this.heartbeat = new Heartbeat(guard, encodedName)
    this.#reservation = new Reservation(guard, () => this.heartbeat.settledNodes)
    this.store = new DenyCache(this.#reservation)
  }

  /** Gives leases of these keys back, so that the store decides their next requests. */
  giveBack(keys: readonly string[]): Promise<void> {
    return this.#reservation.giveBack(keys)
  }

  /** Gives all leases back, and is counted as a process no more. */
  async close(): Promise<void> {
    await Promise.all([this.#reservation.close(), this.heartbeat.close()])
  }
}
