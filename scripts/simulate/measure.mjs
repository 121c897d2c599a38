// What was admitted, against what an algorithm admits. Times in any order; each stands for one unit.

/** The most units in any span of this length, its end excluded. @param {readonly number[]} times @param {number} span */
export function mostIn(times, span) {
  const sorted = Float64Array.from(times).sort()
  let [most, first] = [0, 0]
  for (let last = 0; last < sorted.length; last++) {
    while (at(sorted, first) <= at(sorted, last) - span) first += 1
    most = Math.max(most, last - first + 1)
  }
  return most
}

/**
 * The most units in any interval beyond `burst` and what comes back in it.
 * @param {readonly number[]} times @param {number} burst @param {number} rate units per unit of time
 */
export function mostBeyond(times, burst, rate) {
  const sorted = Float64Array.from(times).sort()
  let [lowest, most] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (let i = 0; i < sorted.length; i++) {
    const refilled = rate * (at(sorted, i) - at(sorted, 0))
    lowest = Math.min(lowest, i - refilled)
    most = Math.max(most, i + 1 - refilled - lowest - burst)
  }
  return most
}

/** @param {Float64Array} numbers @param {number} place */
const at = (numbers, place) => /** @type {number} */ (numbers[place])
