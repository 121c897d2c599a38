/** How many calls are looked back on, at most. */
const sampleSize = 100
/** For how long, unless there were fewer calls than {@link fewestCalls}. */
const sampleMs = 10_000
const fewestCalls = 5
const fewestFailures = 3

/** How long the first probe waits, and how long one waits at most, each twice as long as the one before. */
const firstProbeMs = 100
const longestProbeMs = 500

/**
 * Stops calls to what keeps failing, and finds out when it answers again.
 *
 * Closed, it counts how calls end. It opens when at least half of the last calls failed, and at least three: of the
 * last 100 calls, without those older than 10 s, but never of fewer than the last five. A failure during which another
 * call was answered does not count, since it says nothing of the whole.
 *
 * Open, it lets a single call through as a probe: 100 ms after it opened, then after 200, 400 and every further 500 ms,
 * whether or not the probe before has ended. The first probe that succeeds closes it. A call with a longer budget than
 * the last that was let through is a probe at any time: where one with a short budget fails it may be answered.
 */
export class CircuitBreaker {
  readonly #nowMs: () => number
  readonly #onChange: (cause: Error | undefined) => void
  readonly #sample = new Sample()
  #answeredAtMs = Number.NEGATIVE_INFINITY
  #open:
    | { readonly atMs: number; readonly cause: Error; waitMs: number; probeAtMs: number; triedMs: number }
    | undefined

  /**
   * @param nowMs a monotonic clock in milliseconds
   * @param onChange hears of each opening, with the failure that caused it, and of each closing, with nothing
   */
  constructor(nowMs: () => number, onChange: (cause: Error | undefined) => void) {
    this.#nowMs = nowMs
    this.#onChange = onChange
  }

  /** The failure that opened it; undefined while it is closed. */
  get cause(): Error | undefined {
    return this.#open?.cause
  }

  /** When the call that asks may start, which is now; undefined if it must not. */
  enter(budgetMs: number): number | undefined {
    const nowMs = this.#nowMs()
    const open = this.#open
    if (!open) return nowMs
    if (nowMs >= open.probeAtMs) {
      open.waitMs = Math.min(2 * open.waitMs, longestProbeMs)
      open.probeAtMs = nowMs + open.waitMs
    } else if (budgetMs <= open.triedMs) return undefined
    open.triedMs = budgetMs
    return nowMs
  }

  /** Takes note that a call was answered, which {@link enter} let start at `startedMs`. */
  succeeded(startedMs: number): void {
    this.#answeredAtMs = this.#nowMs()
    if (!this.#open) {
      this.#sample.add(this.#answeredAtMs, false)
    } else if (startedMs > this.#open.atMs) {
      this.#open = undefined
      this.#onChange(undefined)
    }
  }

  /** Takes note that a call failed, which {@link enter} let start at `startedMs` with this budget. */
  failed(startedMs: number, budgetMs: number, cause: Error): void {
    if (this.#open || this.#answeredAtMs > startedMs) return
    const atMs = this.#nowMs()
    this.#sample.add(atMs, true)
    if (!this.#sample.fails) return
    this.#sample.clear()
    this.#open = { atMs, cause, waitMs: firstProbeMs, probeAtMs: atMs + firstProbeMs, triedMs: budgetMs }
    this.#onChange(cause)
  }
}

/** How the last calls ended, oldest first. */
class Sample {
  readonly #endedMs = new Float64Array(sampleSize)
  readonly #failed = new Uint8Array(sampleSize)
  #start = 0
  #size = 0
  #failures = 0

  get fails(): boolean {
    return this.#failures >= fewestFailures && 2 * this.#failures >= this.#size
  }

  add(endedMs: number, failed: boolean): void {
    const oldest = (): number => this.#endedMs[this.#start] as number
    while (this.#size === sampleSize || (this.#size >= fewestCalls && endedMs - oldest() > sampleMs))
      this.#drop()
    const place = (this.#start + this.#size) % sampleSize
    this.#endedMs[place] = endedMs
    this.#failed[place] = failed ? 1 : 0
    this.#size += 1
    if (failed) this.#failures += 1
  }

  clear(): void {
    this.#size = 0
    this.#failures = 0
  }

  #drop(): void {
    this.#failures -= this.#failed[this.#start] as number
    this.#start = (this.#start + 1) % sampleSize
    this.#size -= 1
  }
}
