// Virtual time: events happen in the order of their times, and what they set off happens before the next one.

/** @typedef {{ atMs: number, order: number, happen: () => unknown }} Event */

export class VirtualClock {
  nowMs = 0
  /** A heap, the next event first. @type {Event[]} */
  #events = []
  #order = 0

  /** @param {number} ms @param {() => unknown} happen awaited before the next event */
  after(ms, happen) {
    const event = { atMs: this.nowMs + ms, order: this.#order++, happen }
    const events = this.#events
    let place = events.length
    while (place > 0) {
      const parent = (place - 1) >> 1
      if (!isBefore(event, /** @type {Event} */ (events[parent]))) break
      events[place] = /** @type {Event} */ (events[parent])
      place = parent
    }
    events[place] = event
  }

  /** Lets all events happen up to a time. @param {number} untilMs */
  async runTo(untilMs) {
    for (let next = this.#events[0]; next && next.atMs <= untilMs; next = this.#events[0]) {
      this.#removeFirst()
      this.nowMs = next.atMs
      await next.happen()
    }
    this.nowMs = untilMs
  }

  #removeFirst() {
    const events = this.#events
    const last = /** @type {Event} */ (events.pop())
    if (events.length === 0) return
    let place = 0
    for (;;) {
      let child = 2 * place + 1
      const right = events[child + 1]
      if (right && isBefore(right, /** @type {Event} */ (events[child]))) child += 1
      const smaller = events[child]
      if (!smaller || !isBefore(smaller, last)) break
      events[place] = smaller
      place = child
    }
    events[place] = last
  }
}

/** @param {Event} one @param {Event} other */
function isBefore(one, other) {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order)
}

/** Resolves once all that was set off has been done. @returns {Promise<void>} */
export const settled = () => new Promise((resolve) => setImmediate(resolve))
