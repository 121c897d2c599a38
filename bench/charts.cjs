// Bar charts of a run, as SVG that can be read on a light and on a dark page.
const { at, drawing, text } = require('../scripts/svg.cjs')

/** @typedef {import('./bars.cjs').Row} Row */
/** @typedef {{ name: string, kind: string, value?: number, noise?: number, error?: string }} Bar */
/** @typedef {{ title: string, bars: Bar[], line?: { value: number, label: string } }} Panel */

const width = 940
const left = 290
const right = 80
const barHeight = 15
const rowHeight = 20
const head = 40
const gap = 24
const colours = { ground: '#ffffff', ink: '#1f2328' }
const style = [
  '.sluice{fill:#2f81f7}.peer{fill:#bf8700}.control{fill:#8c959f}.faint{fill:#59636e}.line{stroke:#cf222e}',
  '.noise{stroke:#1f2328}',
  '@media(prefers-color-scheme:dark){svg{fill:#e6edf3}.ground{fill:#0d1117}.faint{fill:#9198a1}',
  '.line{stroke:#ff7b72}.noise{stroke:#e6edf3}.peer{fill:#d29922}}',
].join('')

/** Three digits, or whole thousands. @param {number} value */
function show(value) {
  if (Number.isInteger(value) || Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en')
  return value.toPrecision(3)
}

/** @param {Panel} panel @param {number} top */
function drawPanel({ title, bars, line }, top) {
  const values = bars.flatMap(({ value, noise = 0 }) => (value === undefined ? [] : [value * (1 + noise)]))
  const most = Math.max(...values, line?.value ?? 0)
  const length = (/** @type {number} */ value) => (value / most) * (width - left - right)
  const rows = bars.map(({ name, kind, value, noise = 0, error }, i) => {
    const y = top + head + i * rowHeight
    const label = text(left - 8, y + 11, name, ' text-anchor="end"')
    if (value === undefined) return label + text(left, y + 11, `failed: ${error}`, ' class="faint"')
    const [from, to] = [value * (1 - noise), value * (1 + noise)].map(length)
    const [start, end] = [left + /** @type {number} */ (from), left + /** @type {number} */ (to)]
    const whisker =
      noise > 0 ? `<path class="noise" d="M${at(start)} ${at(y + barHeight / 2)}H${at(end)}"/>` : ''
    return [
      label,
      `<rect class="${kind}" x="${left}" y="${at(y)}" width="${at(Math.max(1, length(value)))}" height="${barHeight}"/>`,
      whisker,
      text(Math.max(end, left + length(value)) + 6, y + 11, show(value)),
    ].join('')
  })
  const bottom = top + head + bars.length * rowHeight
  const limit = line && [
    `<path class="line" stroke-dasharray="5 3" d="M${at(left + length(line.value))} ${at(top + head - 4)}V${at(bottom)}"/>`,
    text(left + length(line.value), top + head - 8, line.label, ' class="faint" text-anchor="middle"'),
  ]
  return [text(16, top + 18, title, ' font-size="14" font-weight="600"'), ...rows, ...(limit ?? [])].join(
    '\n',
  )
}

/**
 * One drawing of panels below each other, each with a scale of its own that begins at 0.
 * @param {string} title @param {Panel[]} panels
 */
function barChart(title, panels) {
  let height = 44
  const tops = panels.map(({ bars }) => {
    const top = height
    height += head + bars.length * rowHeight + gap
    return top
  })
  const legend = ['sluice', 'peer', 'control'].map((kind, i) => {
    const x = 16 + i * 90
    return `<rect class="${kind}" x="${x}" y="18" width="12" height="12"/>${text(x + 18, 28, kind)}`
  })
  const note = text(
    300,
    28,
    'bars: medians; lines on them: half of the interquartile range',
    ' class="faint"',
  )
  const frame = { width, height, title, style, ...colours }
  return drawing(frame, [...legend, note, ...panels.map((panel, i) => drawPanel(panel, tops[i] ?? 0))])
}

/**
 * @param {readonly Row[]} rows
 * @param {string} what the figure to draw
 * @returns {Bar[]}
 */
function barsOf(rows, what) {
  return rows.map(({ name, kind, figures, error }) => ({ name, kind, ...figures?.[what], error }))
}

/**
 * The charts of a run by file name.
 * @param {import('./bars.cjs').Sections} sections
 * @returns {Record<string, string>}
 */
function chartsOf({ a, b, c, d, e, f }) {
  const callers = [1, 64, 512]
  const frameworks = Object.keys(e)
  const http = (/** @type {string} */ traffic, /** @type {string} */ what) =>
    frameworks.map((framework) => ({ title: framework, bars: barsOf(e[framework], `${traffic}/${what}`) }))
  return {
    'throughput.svg': barChart(
      'Decisions a second on Redis, 10,000 keys',
      callers.map((count) => ({
        title: `Decisions a second, 10,000 keys, ${count === 1 ? 'one caller' : `${count} callers`}`,
        bars: barsOf(a.throughput, `many/${count}/perSecond`),
      })),
    ),
    'redis-cpu.svg': barChart(
      'Redis CPU of a decision',
      ['64 connections', '64 callers', '512 callers'].map((way) => ({
        title: `Redis CPU of a decision in us, ${way}`,
        bars: barsOf(b.cost, `${way}/cpuUs`),
      })),
    ),
    'redis-memory.svg': barChart(
      'Redis memory of a client',
      [100, 1000, 10_000].map((limit) => ({
        title: `Bytes in Redis of a client that used up a limit of ${limit.toLocaleString('en')}`,
        bars: barsOf(c.memory, `${limit}/bytes`),
      })),
    ),
    'memory-store.svg': barChart('In memory', [
      { title: 'Decisions a second in memory, 10,000 keys', bars: barsOf(d.memory, 'perSecond') },
      { title: 'Bytes of heap for a key', bars: barsOf(d.memory, 'bytesPerKey') },
      { title: 'Longest single decision in ms', bars: barsOf(d.memory, 'longestMs') },
    ]),
    'http.svg': barChart('Requests a second, all admitted', http('normal', 'perSecond')),
    'http-latency.svg': barChart('99th percentile in ms at half load, all admitted', http('normal', 'p99')),
    'http-attack.svg': barChart('Requests a second, 95 % of them denied', http('attack', 'perSecond')),
    'accuracy.svg': barChart('Most admitted in any window', [
      {
        title: 'Most admitted in any window of a second by 4 processes, limit 200',
        bars: barsOf(
          f.accuracy.filter((/** @type {Row} */ { figures, error }) => error || figures?.mostInWindow),
          'mostInWindow',
        ),
        line: { value: 200, label: 'limit' },
      },
    ]),
  }
}

module.exports = { barChart, chartsOf }
