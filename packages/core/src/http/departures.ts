/** Returned by {@link Departures.wait}: `left` withdraws from the queue, and settles the wait with false. */
export interface Wait {
  readonly departed: Promise<boolean>
  readonly left: () => void
}

interface Waiting {
  readonly atMs: number
  readonly go: (departed: boolean) => void
  timer: ReturnType<typeof setTimeout> | undefined
}

/** The longest a timer can run without overflow. */
const longestTimerMs = 2 ** 31 - 1

/**
 * Holds requests until their departures, by a monotonic clock, and lets them go in the order of those: the earlier
 * comer first where two are at the same time. Each has a timer of its own: on some edge runtimes a timer ends with the
 * request that set it.
 */
export class Departures {
  readonly #nowMs: () => number
  /** By departure, the next one first. */
  readonly #waiting: Waiting[] = []

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs
  }

  /** Waits for a departure `delayMs` milliseconds from now; settles with whether the request may go. */
  wait(delayMs: number): Wait {
    let go: Waiting['go'] = () => {}
    const departed = new Promise<boolean>((resolve) => {
      go = resolve
    })
    const waiting: Waiting = { atMs: this.#nowMs() + delayMs, go, timer: undefined }
    let place = this.#waiting.length
    while (place > 0 && (this.#waiting[place - 1] as Waiting).atMs > waiting.atMs) place -= 1
    this.#waiting.splice(place, 0, waiting)
    this.#arm(waiting)
    return { departed, left: () => this.#leave(waiting) }
  }

  #leave(waiting: Waiting): void {
    const place = this.#waiting.indexOf(waiting)
    if (place === -1) return
    this.#waiting.splice(place, 1)
    this.#end(waiting, false)
  }

  #arm(waiting: Waiting): void {
    const delayMs = Math.min(longestTimerMs, Math.max(0, Math.ceil(waiting.atMs - this.#nowMs())))
    waiting.timer = setTimeout(() => this.#fired(waiting), delayMs)
  }

  /** Timers may fire early, so the clock decides; those before this one go first. */
  #fired(waiting: Waiting): void {
    const nowMs = this.#nowMs()
    if (waiting.atMs > nowMs) {
      this.#arm(waiting)
      return
    }
    let next = this.#waiting[0]
    while (next && next.atMs <= nowMs) {
      this.#waiting.shift()
      this.#end(next, true)
      next = this.#waiting[0]
    }
  }

  #end(waiting: Waiting, departed: boolean): void {
    clearTimeout(waiting.timer)
    waiting.go(departed)
  }
}
