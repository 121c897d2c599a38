// Random numbers from a seed, the same on every machine.

/** Numbers in [0, 1) by mulberry32. @param {number} seed */
export function randomFrom(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/**
 * Chooses places 0 to count - 1: all alike, or by Zipf's law, the first most often.
 * @param {number} count @param {boolean} skewed @param {() => number} random
 */
export function chooserOf(count, skewed, random) {
  if (!skewed) return () => Math.floor(random() * count)
  const upTo = Array.from({ length: count }, () => 0)
  let sum = 0
  for (let place = 0; place < count; place++) {
    sum += 1 / (place + 1)
    upTo[place] = sum
  }
  return () => {
    const wanted = random() * sum
    let [low, high] = [0, count - 1]
    while (low < high) {
      const middle = (low + high) >> 1
      if (/** @type {number} */ (upTo[middle]) > wanted) high = middle
      else low = middle + 1
    }
    return low
  }
}
