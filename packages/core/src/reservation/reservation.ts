import { CheckIndex } from '../check-index.js'
import type { Check, ConsumeOptions, Refund, Store, Verdict } from '../store.js'
import { Lease } from './lease.js'
import type { LeaseHost, LeaseTally } from './lease-host.js'

/** The clock of leases: monotonic milliseconds, and a timer that keeps no process alive. */
export interface LeaseClock {
  nowMs(): number
  after(ms: number, call: () => void): void
}

const processClock: LeaseClock = {
  nowMs: () => performance.now(),
  after(ms, call) {
    ;(setTimeout(call, ms) as { unref?(): void }).unref?.()
  },
}

/** How many keys have leases at once; decisions of further keys ask the store. */
const maxLeases = 16_384

/**
 * Draws units of busy keys ahead from a shared store, and spends them in memory. All policies of a decision lease
 * together. A decision waits for the store only while nothing is left of its lease, and more is drawn in the background
 * before that. A lease is as large as what waits for it, else this process's share of what the store has left, and no
 * larger than what it will probably spend; it is given back when nobody asks for it, and on close.
 *
 * A process that ends without closing leaves at most a lease of each key charged, as if it had been spent.
 */
export class Reservation implements Store {
  readonly shared = true
  /** What became of all units that were leased; see {@link LeaseTally}. */
  readonly tally: LeaseTally = { charged: 0, admitted: 0, returned: 0, expired: 0 }
  readonly #store: Store
  readonly #clock: LeaseClock
  readonly #host: LeaseHost
  readonly #leases = new CheckIndex<Lease>()
  /** When the next sweep is due. */
  #sweepMs = Number.POSITIVE_INFINITY

  /**
   * @param nodes how many processes share the store; undefined while that is not known, and nothing is held then
   * @param clock for tests and simulations
   */
  constructor(store: Store, nodes: () => number | undefined, clock: LeaseClock = processClock) {
    this.#store = store
    this.#clock = clock
    this.#host = { store, tally: this.tally, nowMs: () => clock.nowMs(), nodes }
  }

  /** Units held at the moment, of all keys. */
  get held(): number {
    return this.#leases.values().reduce((sum, { held }) => sum + held, 0)
  }

  consume(checks: readonly Check[], options: ConsumeOptions): Promise<readonly Verdict[]> {
    const { lease: terms } = options
    const { least, most } = checks[0] as Check
    if (!terms || least !== most || !fits(checks, most, terms.max))
      return this.#store.consume(checks, options)
    let lease = this.#leases.find(checks)
    if (!lease) {
      if (this.#leases.size >= maxLeases) return this.#store.consume(checks, options)
      lease = new Lease(checks, terms, this.#host)
      this.#leases.add(checks, lease)
      this.#sweepLater(lease.idleMs)
    }
    return lease.take(most, terms, options)
  }

  async peek(checks: readonly Check[], options: ConsumeOptions): Promise<readonly Verdict[]> {
    const verdicts = await this.#store.peek(checks, options)
    return this.#leases.find(checks)?.peek((checks[0] as Check).most, verdicts) ?? verdicts
  }

  refund(refunds: readonly Refund[], options: ConsumeOptions): Promise<void> {
    return this.#store.refund(refunds, options)
  }

  async reset(keys: readonly string[], options: ConsumeOptions): Promise<void> {
    try {
      await this.#store.reset(keys, options)
    } finally {
      // Also where it failed: it may have been reset all the same.
      for (const lease of this.#leases.take(keys)) lease.drop()
    }
  }

  /** Gives back what is held of these keys, so that the store decides the next request of each. */
  async giveBack(keys: readonly string[]): Promise<void> {
    await Promise.all(this.#leases.take(keys).map((lease) => lease.giveBack()))
  }

  /** Gives back all that is held, and waits until that is done. */
  async close(): Promise<void> {
    const leases = this.#leases.values()
    this.#leases.keep(() => false)
    await Promise.all(leases.map((lease) => lease.giveBack()))
  }

  #sweepLater(ms: number): void {
    const dueMs = this.#clock.nowMs() + ms
    if (dueMs >= this.#sweepMs) return
    this.#sweepMs = dueMs
    this.#clock.after(ms, () => {
      if (dueMs === this.#sweepMs) this.#sweep()
    })
  }

  /** Gives back what nobody asked for in a while, and forgets leases that hold nothing. */
  #sweep(): void {
    this.#sweepMs = Number.POSITIVE_INFINITY
    const nowMs = this.#clock.nowMs()
    let soonestMs = Number.POSITIVE_INFINITY
    this.#leases.keep((lease) => {
      const idle = nowMs - lease.usedMs >= lease.idleMs
      if (idle) void lease.giveBack()
      else soonestMs = Math.min(soonestMs, lease.idleMs)
      return !idle
    })
    if (this.#leases.size > 0) this.#sweepLater(soonestMs)
  }
}

/** Whether a cost is one that leases serve: some, no more than a lease may hold, and than could ever pass. */
function fits(checks: readonly Check[], cost: number, max: number): boolean {
  if (cost === 0 || cost > max) return false
  return checks.every(({ policy }) => policy.shadow || !policy.countsUnits || cost <= policy.burst)
}
