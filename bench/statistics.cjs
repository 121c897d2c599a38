// Numbers of several runs. CommonJS, so that plain programs and tests load the same file.

/** @typedef {{ value: number, noise: number }} Figure noise: the part of the value by which runs differ */

/** @param {readonly number[]} numbers in any order @param {number} share 0 to 1 */
function quantile(numbers, share) {
  const sorted = [...numbers].sort((a, b) => a - b)
  const at = share * (sorted.length - 1)
  const [low, high] = [Math.floor(at), Math.ceil(at)]
  const [from, to] = [/** @type {number} */ (sorted[low]), /** @type {number} */ (sorted[high])]
  // Not for equal ones, which may be Infinity.
  return from === to ? from : from + (to - from) * (at - low)
}

const median = (/** @type {readonly number[]} */ numbers) => quantile(numbers, 0.5)

/**
 * The median of the runs, and half of their interquartile range as a part of it.
 * @param {readonly number[]} runs
 * @returns {Figure}
 */
function figureOf(runs) {
  const value = median(runs)
  const half = (quantile(runs, 0.75) - quantile(runs, 0.25)) / 2
  return { value, noise: half === 0 ? 0 : half / Math.abs(value) }
}

/**
 * One figure by another, their noise added up as that of independent ones.
 * @param {Figure} figure @param {Figure} by
 * @returns {Figure}
 */
function ratioOf(figure, by) {
  return { value: figure.value / by.value, noise: Math.hypot(figure.noise, by.noise) }
}

/**
 * Sums up runs, each of which measured the same things.
 * @param {readonly Record<string, number>[]} runs
 * @returns {Record<string, Figure>}
 */
function figuresOf(runs) {
  const names = Object.keys(runs[0] ?? {})
  return Object.fromEntries(names.map((name) => [name, figureOf(runs.map((run) => run[name] ?? Number.NaN))]))
}

module.exports = { quantile, median, figureOf, ratioOf, figuresOf }
