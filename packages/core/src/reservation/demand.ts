/** How many units are asked for, by what was asked for in the past: recent requests count most. */
export class Demand {
  /** What was asked for, fading, as reckoned at some moment; and what was since. */
  #units = 0
  #reckonedMs: number
  #since = 0

  /** @param nowMs a monotonic clock, as for all calls */
  constructor(nowMs: number) {
    this.#reckonedMs = nowMs
  }

  add(units: number): void {
    this.#since += units
  }

  /** The units that will be asked for in a millisecond, if it goes on as in the last `spanMs`. */
  perMs(spanMs: number, nowMs: number): number {
    this.#units = this.#units * Math.exp((this.#reckonedMs - nowMs) / spanMs) + this.#since
    this.#reckonedMs = nowMs
    this.#since = 0
    return this.#units / spanMs
  }
}
