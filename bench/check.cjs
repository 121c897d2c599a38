// Whether a run shows what it has to.
const { bars: all, NotMeasured } = require('./bars.cjs')

/** @typedef {import('./statistics.cjs').Figure} Figure */
/** @typedef {import('./bars.cjs').Bar} Bar */
/** @typedef {'aim' | 'floor' | 'within noise' | 'missed' | 'failed' | 'not measured'} Verdict */
/** @typedef {Omit<Bar, 'of'> & { verdict: Verdict, figure?: Figure, error?: string }} Checked */

/**
 * Whether a measured figure reaches a bar: its aim, its floor, its floor but for the noise of the run, or not.
 * @param {Pick<Bar, 'better' | 'floor' | 'aim'>} bar
 * @param {Figure} figure
 * @returns {Verdict}
 */
function verdictOf({ better, floor, aim }, { value, noise }) {
  if (better === 'equal') return value === aim ? 'aim' : 'missed'
  const slack = Math.abs(value) * noise
  const reaches = (/** @type {number} */ bar, /** @type {number} */ grace) =>
    better === 'lower' ? value - grace <= bar : value + grace >= bar
  if (reaches(aim, 0)) return 'aim'
  if (reaches(floor, 0)) return 'floor'
  return reaches(floor, slack) ? 'within noise' : 'missed'
}

/**
 * Every bar of the sections that were measured.
 * @param {import('./bars.cjs').Sections} sections
 * @param {readonly Bar[]} [list]
 * @returns {Checked[]}
 */
function check(sections, list = all) {
  return list
    .filter(({ section }) => section in sections)
    .map(({ of, ...bar }) => {
      try {
        const figure = of(sections)
        return { ...bar, figure, verdict: verdictOf(bar, figure) }
      } catch (error) {
        const verdict = error instanceof NotMeasured ? 'not measured' : 'failed'
        return { ...bar, verdict, error: error instanceof Error ? error.message : String(error) }
      }
    })
}

/**
 * Whether a run shows all that it has to; only a quick one may leave something out.
 * @param {readonly { verdict: Verdict }[]} checked @param {boolean} quick
 */
function passes(checked, quick) {
  return checked.every(({ verdict }) =>
    verdict === 'not measured' ? quick : verdict !== 'missed' && verdict !== 'failed',
  )
}

module.exports = { verdictOf, check, passes }
