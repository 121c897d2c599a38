/**
 * The most of the spans that surely lie in one window of this length: each as a whole, the window's end not included.
 * @param {readonly (readonly [from: number, to: number])[]} spans in any order
 * @param {number} length
 */
function mostWithin(spans, length) {
  const counts = spans.map(
    ([start]) => spans.filter(([from, to]) => from >= start && to < start + length).length,
  )
  return Math.max(0, ...counts)
}

module.exports = { mostWithin }
