import { SluiceError, show, storeTimeout, withoutCode } from '../errors.js'
import type { SluiceEvent } from '../events.js'
import type { Reporter } from '../reporter.js'
import type { Check, ConsumeOptions, Refund, Store, Verdict } from '../store.js'
import { asError } from './as-error.js'
import { checkVerdicts } from './check-verdicts.js'
import { CircuitBreaker } from './circuit-breaker.js'
import { within } from './within.js'

/** A limiter that hears of its store going down and coming up. */
export interface Watcher {
  readonly limiter: string
  readonly reporter: Reporter
}

/** Limiters that share a listener or a log, and the reporter of the first. */
interface Group {
  readonly reporter: Reporter
  readonly limiters: string[]
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
  #down: { readonly atMs: number; readonly error: Error } | undefined
  #degraded = 0
  #settling: ReturnType<typeof setTimeout> | undefined

  /** @param nowMs a monotonic clock in milliseconds; for tests */
  constructor(store: Store, nowMs = () => performance.now()) {
    this.#store = store
    this.#nowMs = nowMs
    this.#breaker = new CircuitBreaker(nowMs, (cause) => (cause ? this.#opened(cause) : this.#closed()))
  }

  consume(checks: readonly Check[], options: ConsumeOptions): Promise<readonly Verdict[]> {
    return this.#run(options, () => this.#store.consume(checks, options), checks.length)
  }

  peek(checks: readonly Check[], options: ConsumeOptions): Promise<readonly Verdict[]> {
    return this.#run(options, () => this.#store.peek(checks, options), checks.length)
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

  /** Tells it of changes, and at once that the store is down, unless its listener or log has heard that already. */
  watch(watcher: Watcher): void {
    this.#watchers.add(watcher)
    if (this.#down) this.#announceDown(this.#down.error, watcher.reporter)
  }

  unwatch(watcher: Watcher): void {
    this.#watchers.delete(watcher)
  }

  /** Takes note of a decision that was made without the store. */
  countDegraded(): void {
    this.#degraded += 1
  }

  /**
   * @param verdicts how many the answer has to have, if it is one of those
   * @throws SluiceError `SLUICE_STORE_DOWN` without a call while the breaker is open, `SLUICE_STORE_TIMEOUT` once the
   *   budget is spent; whatever the store throws
   */
  async #run<T>({ timeoutMs }: ConsumeOptions, call: () => Promise<T>, verdicts?: number): Promise<T> {
    const startedMs = this.#breaker.enter(timeoutMs)
    if (startedMs === undefined) {
      const { cause } = this.#breaker
      const why = cause instanceof SluiceError ? withoutCode(cause) : cause?.message
      throw new SluiceError('SLUICE_STORE_DOWN', `The store is down: ${why}`, { cause })
    }
    try {
      const answer = await within(call(), timeoutMs, () => storeTimeout(timeoutMs))
      if (verdicts !== undefined) checkVerdicts(answer, verdicts)
      this.#breaker.succeeded(startedMs)
      return answer
    } catch (thrown) {
      const error = asError(thrown)
      this.#breaker.failed(startedMs, timeoutMs, error)
      throw error
    }
  }

  #opened(error: Error): void {
    clearTimeout(this.#settling)
    if (this.#down) return
    this.#down = { atMs: this.#nowMs(), error }
    this.#degraded = 0
    this.#announceDown(error)
  }

  #closed(): void {
    const downMs = Math.round(this.#nowMs() - (this.#down?.atMs ?? 0))
    this.#settling = setTimeout(() => this.#settled(downMs), settleMs)
    // Nobody waits for the announcement; the process may end before.
    ;(this.#settling as { unref?(): void }).unref?.()
  }

  #settled(downMs: number): void {
    const degraded = this.#degraded
    this.#down = undefined
    this.#announce(
      (limiters) => ({ type: 'store-up', limiters, downMs, degraded }),
      `is up again after ${downMs} ms, in which ${degraded} requests were decided without it`,
    )
  }

  #announceDown(error: Error, newcomer?: Reporter): void {
    const what = `is down: ${error.message}`
    this.#announce((limiters) => ({ type: 'store-down', limiters, error }), what, newcomer)
  }

  /**
   * Tells each listener once and writes one line to each log, however many limiters share them.
   * @param newcomer told alone; what it shares with an earlier limiter is left out
   */
  #announce(event: (limiters: readonly string[]) => SluiceEvent, what: string, newcomer?: Reporter): void {
    // The first of those that share something speaks for them, so that a newcomer speaks only for itself.
    const isDue = ({ reporter }: Group): boolean => newcomer === undefined || reporter === newcomer
    for (const { reporter, limiters } of this.#watchersBy('onEvent').filter(isDue)) {
      reporter.emit(event(limiters))
    }
    for (const { reporter, limiters } of this.#watchersBy('logger').filter(isDue)) {
      reporter.log(`the store of ${limiters.map(show).join(', ')} ${what}`)
    }
  }

  #watchersBy(what: 'onEvent' | 'logger'): Group[] {
    const groups = new Map<unknown, Group>()
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
