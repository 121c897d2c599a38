import { SluiceError, show } from '../errors.js'
import type { Reporter } from '../reporter.js'
import type { Check, ConsumeOptions, Refund, Store, Verdict } from '../store.js'
import { CircuitBreaker } from './circuit-breaker.js'
import { within } from './within.js'

/** A limiter that hears of its store going down and coming up. */
export interface Watcher {
  readonly limiter: string
  readonly reporter: Reporter
}

/** How long a store that answers again is watched before it counts as up: one that fails in between never was. */
const settleMs = 1000

/**
 * A shared store behind the deadline of each call and one circuit breaker for all of them. Tells the limiters on it
 * when it goes down and when it is up again.
 */
export class GuardedStore implements Store {
  readonly shared = true
  readonly #store: Store
  readonly #nowMs: () => number
  readonly #breaker: CircuitBreaker
  readonly #watchers = new Set<Watcher>()
  #downAtMs: number | undefined
  #degraded = 0
  #settling: ReturnType<typeof setTimeout> | undefined

  /** @param nowMs a monotonic clock in milliseconds; for tests */
  constructor(store: Store, nowMs = () => performance.now()) {
    this.#store = store
    this.#nowMs = nowMs
    this.#breaker = new CircuitBreaker(nowMs, (cause) => (cause ? this.#opened(cause) : this.#closed()))
  }

  consume(checks: readonly Check[], options: ConsumeOptions): Promise<readonly Verdict[]> {
    return this.#run(options, () => this.#store.consume(checks, options))
  }

  peek(checks: readonly Check[], options: ConsumeOptions): Promise<readonly Verdict[]> {
    return this.#run(options, () => this.#store.peek(checks, options))
  }

  refund(refunds: readonly Refund[], options: ConsumeOptions): Promise<void> {
    return this.#run(options, () => this.#store.refund(refunds, options))
  }

  reset(keys: readonly string[], options: ConsumeOptions): Promise<void> {
    return this.#run(options, () => this.#store.reset(keys, options))
  }

  close(): Promise<void> {
    return this.#store.close()
  }

  watch(watcher: Watcher): void {
    this.#watchers.add(watcher)
  }

  unwatch(watcher: Watcher): void {
    this.#watchers.delete(watcher)
  }

  /** Takes note of a decision that was made without the store. */
  countDegraded(): void {
    this.#degraded += 1
  }

  /**
   * @throws SluiceError `SLUICE_STORE_DOWN` without a call while the breaker is open, `SLUICE_STORE_TIMEOUT` once the
   *   budget is spent; whatever the store throws
   */
  async #run<T>({ timeoutMs }: ConsumeOptions, call: () => Promise<T>): Promise<T> {
    const startedMs = this.#breaker.enter()
    if (startedMs === undefined) {
      const { cause } = this.#breaker
      throw new SluiceError('SLUICE_STORE_DOWN', `The store is down: ${cause?.message}`, { cause })
    }
    try {
      const answer = await within(call(), timeoutMs, () => {
        return new SluiceError('SLUICE_STORE_TIMEOUT', `The store did not answer within ${timeoutMs} ms`)
      })
      this.#breaker.succeeded(startedMs)
      return answer
    } catch (thrown) {
      const error = thrown instanceof Error ? thrown : new Error(String(thrown))
      this.#breaker.failed(startedMs, error)
      throw error
    }
  }

  #opened(error: Error): void {
    clearTimeout(this.#settling)
    if (this.#downAtMs !== undefined) return
    this.#downAtMs = this.#nowMs()
    this.#degraded = 0
    this.#announce((limiters) => ({ type: 'store-down', limiters, error }), `is down: ${error.message}`)
  }

  #closed(): void {
    const downMs = Math.round(this.#nowMs() - (this.#downAtMs ?? 0))
    this.#settling = setTimeout(() => this.#settled(downMs), settleMs)
    // Nobody waits for the announcement; the process may end before.
    ;(this.#settling as { unref?(): void }).unref?.()
  }

  #settled(downMs: number): void {
    const degraded = this.#degraded
    this.#downAtMs = undefined
    this.#announce(
      (limiters) => ({ type: 'store-up', limiters, downMs, degraded }),
      `is up again after ${downMs} ms, in which ${degraded} requests were decided without it`,
    )
  }

  /** Tells each listener once and writes one line to each log, however many limiters share them. */
  #announce(event: (limiters: readonly string[]) => Parameters<Reporter['emit']>[0], what: string): void {
    for (const { reporter, limiters } of this.#watchersBy('onEvent')) reporter.emit(event(limiters))
    for (const { reporter, limiters } of this.#watchersBy('logger')) {
      reporter.log(`the store of ${limiters.map(show).join(', ')} ${what}`)
    }
  }

  #watchersBy(what: 'onEvent' | 'logger'): { reporter: Reporter; limiters: string[] }[] {
    const groups = new Map<unknown, { reporter: Reporter; limiters: string[] }>()
    for (const { limiter, reporter } of this.#watchers) {
      const group = groups.get(reporter[what])
      if (group) group.limiters.push(limiter)
      else groups.set(reporter[what], { reporter, limiters: [limiter] })
    }
    return [...groups.values()]
  }
}

const guards = new WeakMap<Store, GuardedStore>()

/** The one guard of a shared store, for all limiters on it. */
export function guardOf(store: Store): GuardedStore {
  let guard = guards.get(store)
  if (!guard) {
    guard = new GuardedStore(store)
    guards.set(store, guard)
  }
  return guard
}
