// Draws what was admitted beyond each limit, by the number of processes, with the bound.
import svg from '../svg.cjs'

const { at, drawing, text } = svg

/** @typedef {{ nodes: number, limit: number, beyond: number, bound: number }} Row */

const columns = 2
const panel = { width: 470, height: 190, left: 46, right: 22, top: 34, bottom: 28 }
const plot = {
  width: panel.width - panel.left - panel.right,
  height: panel.height - panel.top - panel.bottom,
}
const colour = { measured: '#2f81f7', bound: '#cf222e', grid: '#d0d7de', faint: '#59636e', text: '#1f2328' }
const ticks = [1, 10, 100, 1000, 10_000, 100_000]

/** Below one unit all is drawn at the foot. @param {number} units */
const y = (units) => panel.top + plot.height * (1 - Math.log10(Math.max(1, units)) / 5)
/** @param {number} place @param {number} count */
const x = (place, count) => panel.left + (plot.width * (place + 0.5)) / count

/** @param {readonly Row[]} rows @param {(row: Row) => number} of @param {string} look */
function line(rows, of, look) {
  const points = rows.map((row, place) => `${at(x(place, rows.length))} ${at(y(of(row)))}`)
  return `<path fill="none" ${look} d="M${points.join('L')}"/>`
}

/** @param {readonly Row[]} rows of one limit @param {number} place */
function drawPanel(rows, place) {
  const [first] = rows
  const grid = ticks.map((tick) => {
    const rule = `<path stroke="${colour.grid}" stroke-dasharray="1 3" d="M${panel.left} ${at(y(tick))}H${panel.width - panel.right}"/>`
    const label = tick.toLocaleString('en-US')
    return rule + text(panel.left - 6, y(tick) + 4, label, ` fill="${colour.faint}" text-anchor="end"`)
  })
  const counts = rows.map(({ nodes }, i) =>
    text(x(i, rows.length), panel.height - 8, `${nodes}`, ` fill="${colour.faint}" text-anchor="middle"`),
  )
  const dots = rows.map(
    ({ beyond }, i) =>
      `<circle cx="${at(x(i, rows.length))}" cy="${at(y(beyond))}" r="3" fill="${colour.measured}"/>`,
  )
  return [
    `<g transform="translate(${(place % columns) * panel.width} ${Math.floor(place / columns) * panel.height})">`,
    text(
      panel.left,
      20,
      `${first?.limit.toLocaleString('en-US')} a minute`,
      ' font-size="14" font-weight="600"',
    ),
    ...grid,
    ...counts,
    line(rows, ({ bound }) => bound, `stroke="${colour.bound}" stroke-dasharray="5 3"`),
    line(rows, ({ beyond }) => beyond, `stroke="${colour.measured}" stroke-width="1.5"`),
    ...dots,
    '</g>',
  ].join('\n')
}

/** @param {number} place */
function drawLegend(place) {
  const rows = [
    [
      `<path stroke="${colour.measured}" stroke-width="1.5" d="M0 -4H22"/>`,
      'most admitted beyond the limit, in units',
    ],
    [`<path stroke="${colour.bound}" stroke-dasharray="5 3" d="M0 -4H22"/>`, 'the bound'],
    ['', 'by the number of processes; 1 stands for 1 or less'],
  ]
  return [
    `<g transform="translate(${(place % columns) * panel.width + panel.left} ${Math.floor(place / columns) * panel.height + panel.top + 20})">`,
    ...rows.map(
      ([sample, label], row) =>
        `<g transform="translate(0 ${row * 24})">${sample}${text(32, 0, `${label}`)}</g>`,
    ),
    '</g>',
  ].join('\n')
}

/** @param {readonly Row[]} rows */
export function chart(rows) {
  const limits = [...new Set(rows.map(({ limit }) => limit))]
  const frame = {
    width: columns * panel.width,
    height: Math.ceil((limits.length + 1) / columns) * panel.height,
    title: 'What processes that lease admit beyond their limit, against the bound',
    ink: colour.text,
    ground: '#ffffff',
  }
  const panels = limits.map((limit, place) =>
    drawPanel(
      rows.filter((row) => row.limit === limit),
      place,
    ),
  )
  return drawing(frame, [...panels, drawLegend(limits.length)])
}
