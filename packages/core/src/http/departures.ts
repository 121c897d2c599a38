/** Returned by {@link Departures.wait}: `left` withdraws from the queue, and settles the wait with false. */
export interface Wait {
  readonly departed: Promise<boolean>
  readonly left: () => void
}

interface Waiting {
  readonly atMs: number
  readonly go: (departed: boolean) => void
}

/** The longest a timer can run without overflow. */
const longestTimerMs = 2 ** 31 - 1

/**
 * Holds requests until their departures, by a monotonic clock, and lets them go in the order of those: the earlier
 * comer first where two are at the same time. One timer serves all that wait.
 */
export class Departures {
  readonly #nowMs: () => number
  /** By departure, the next one first. */
  readonly #waiting: Waiting[] = []
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs
  }

  /** Waits for a departure `delayMs` milliseconds from now; settles with whether the request may go. */
  wait(delayMs: number): Wait {
    let go: Waiting['go'] = () => {}
    const departed = new Promise<boolean>((resolve) => {
      go = resolve
    })
    const waiting = { atMs: this.#nowMs() + delayMs, go }
    let place = this.#waiting.length
    while (place > 0 && (this.#waiting[place - 1] as Waiting).atMs > waiting.atMs) place -= 1
    this.#waiting.splice(place, 0, waiting)
    if (place === 0) this.#arm()
    return { departed, left: () => this.#leave(waiting) }
  }

  #leave(waiting: Waiting): void {
    const place = this.#waiting.indexOf(waiting)
    if (place === -1) return
    this.#waiting.splice(place, 1)
    waiting.go(false)
    if (place === 0) this.#arm()
  }

  #arm(): void {
    clearTimeout(this.#timer)
    const next = this.#waiting[0]
    if (!next) return
    const delayMs = Math.min(longestTimerMs, Math.max(0, Math.ceil(next.atMs - this.#nowMs())))
    this.#timer = setTimeout(() => this.#depart(), delayMs)
  }

  /** Timers may fire early, so the clock decides. */
  #depart(): void {
    const nowMs = this.#nowMs()
    while (this.#waiting[0] && this.#waiting[0].atMs <= nowMs) this.#waiting.shift()?.go(true)
    this.#arm()
  }
}
