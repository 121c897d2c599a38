// Draws docs/algorithms.svg: what each algorithm admits of the same bursty traffic, by its own step and a virtual clock.
// With --check: writes nothing, and fails when the file is not what would be drawn.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { algorithmNames, resolvePolicy } from '@sluice/core'
import { root } from './prepare.mjs'
import svg from './svg.cjs'

const { at, drawing, text } = svg

const file = join(root, 'docs/algorithms.svg')

const limit = 10
const windowMs = 10_000
const lengthMs = 40_000
const binMs = 1000
const startUs = 1_800_000_000_000_000

/** Times of the requests in ms: a burst on either side of a window's edge, silence, then twice the limit for a while. */
const traffic = [
  { fromMs: 8000, toMs: 12_000, everyMs: 125 },
  { fromMs: 20_000, toMs: 32_000, everyMs: 500 },
].flatMap(({ fromMs, toMs, everyMs }) =>
  Array.from({ length: (toMs - fromMs) / everyMs }, (_, i) => fromMs + i * everyMs),
)

/** When the admitted requests run, in ms: at once, or when their turn comes. @param {string} algorithm */
function admit(algorithm) {
  const queue = algorithm === 'leaky-bucket' ? { queue: limit - 1 } : {}
  const { step, rule } = resolvePolicy(
    /** @type {import('@sluice/core').Policy} */ ({ algorithm, limit, window: windowMs, ...queue }),
  )
  let state
  const runs = []
  for (const atMs of traffic) {
    const { allowed, delayUs, next } = step(state, startUs + atMs * 1000, 1, rule)
    state = next ?? state
    if (allowed) runs.push(atMs + delayUs / 1000)
  }
  return runs
}

/** How many of the times lie in the window that ends with `atMs`. @param {number[]} times @param {number} atMs */
const inWindow = (times, atMs) => times.filter((time) => time <= atMs && time > atMs - windowMs).length

const columns = 2
const panel = { width: 470, height: 150, left: 34, right: 22, top: 34, bottom: 24 }
const plot = {
  width: panel.width - panel.left - panel.right,
  height: panel.height - panel.top - panel.bottom,
}
const most = 2 * limit
const colour = {
  offered: '#d0d7de',
  admitted: '#2f81f7',
  sum: '#1f2328',
  limit: '#cf222e',
  text: '#1f2328',
  faint: '#59636e',
}

const x = (/** @type {number} */ ms) => panel.left + (ms / lengthMs) * plot.width
const y = (/** @type {number} */ count) => panel.top + (1 - count / most) * plot.height

/** @param {string} fill @param {number[]} times */
function bars(fill, times) {
  const bins = Array.from({ length: lengthMs / binMs }, (_, bin) => {
    const count = times.filter((time) => Math.floor(time / binMs) === bin).length
    if (count === 0) return ''
    const [left, top] = [x(bin * binMs) + 0.5, y(count)]
    return `M${at(left)} ${at(y(0))}V${at(top)}H${at(x((bin + 1) * binMs) - 0.5)}V${at(y(0))}Z`
  })
  return `<path fill="${fill}" d="${bins.join('')}"/>`
}

/** The line of what ran in the last window, up and down in steps. @param {number[]} times */
function sum(times) {
  const changes = [...new Set(times.flatMap((time) => [time, time + windowMs]))].sort((a, b) => a - b)
  const steps = changes
    .filter((time) => time < lengthMs)
    .map((time) => `H${at(x(time))}V${at(y(inWindow(times, time)))}`)
  const line = `M${at(x(0))} ${at(y(0))}${steps.join('')}H${at(x(lengthMs))}`
  return `<path fill="none" stroke="${colour.sum}" stroke-width="1.5" d="${line}"/>`
}

/** @param {string} algorithm @param {number} place */
function drawPanel(algorithm, place) {
  const runs = admit(algorithm)
  const peak = Math.max(...runs.map((time) => inWindow(runs, time)))
  const summary = `${runs.length} of ${traffic.length} admitted, at most ${peak} in 10 s`
  const seconds = [0, 10, 20, 30, 40].map((second) => {
    const grid = `<path stroke="${colour.offered}" stroke-dasharray="1 3" d="M${at(x(second * 1000))} ${at(y(most))}V${at(y(0))}"/>`
    return (
      grid +
      text(x(second * 1000), panel.height - 8, `${second} s`, ` fill="${colour.faint}" text-anchor="middle"`)
    )
  })
  const counts = [0, limit, most].map((count) =>
    text(
      panel.left - 6,
      y(count) + 4,
      `${count}`,
      ` fill="${count === limit ? colour.limit : colour.faint}" text-anchor="end"`,
    ),
  )
  return [
    `<g transform="translate(${(place % columns) * panel.width} ${Math.floor(place / columns) * panel.height})">`,
    text(panel.left, 20, algorithm, ' font-size="14" font-weight="600"'),
    text(panel.width - panel.right, 20, summary, ` fill="${colour.faint}" text-anchor="end"`),
    ...seconds,
    ...counts,
    bars(colour.offered, traffic),
    bars(colour.admitted, runs),
    `<path stroke="${colour.limit}" stroke-dasharray="5 3" d="M${at(x(0))} ${at(y(limit))}H${at(x(lengthMs))}"/>`,
    sum(runs),
    '</g>',
  ].join('\n')
}

/** @param {number} place */
function drawLegend(place) {
  const rows = [
    [`<rect y="-10" width="22" height="10" fill="${colour.offered}"/>`, 'requests sent in one second'],
    [
      `<rect y="-10" width="22" height="10" fill="${colour.admitted}"/>`,
      'of these admitted (leaky-bucket: at their departure)',
    ],
    [`<path stroke="${colour.sum}" stroke-width="1.5" d="M0 -4H22"/>`, 'admitted in the last 10 s'],
    [
      `<path stroke="${colour.limit}" stroke-dasharray="5 3" d="M0 -4H22"/>`,
      'the limit: 10 requests per 10 s',
    ],
  ]
  return [
    `<g transform="translate(${(place % columns) * panel.width + panel.left} ${Math.floor(place / columns) * panel.height + panel.top + 10})">`,
    ...rows.map(
      ([sample, label], row) =>
        `<g transform="translate(0 ${row * 24})">${sample}${text(32, 0, `${label}`)}</g>`,
    ),
    '</g>',
  ].join('\n')
}

function draw() {
  const width = columns * panel.width
  const height = Math.ceil((algorithmNames.length + 1) / columns) * panel.height
  const frame = {
    width,
    height,
    title:
      'What each algorithm admits of the same bursty traffic under a limit of 10 requests per 10 seconds',
    ink: colour.text,
    ground: '#ffffff',
  }
  return drawing(frame, [...algorithmNames.map(drawPanel), drawLegend(algorithmNames.length)])
}

if (process.argv.includes('--check')) {
  if (readFileSync(file, 'utf8') !== draw()) {
    console.error(
      'docs/algorithms.svg is not what scripts/chart.mjs draws: run `npm run chart` and commit the result.',
    )
    process.exitCode = 1
  }
} else {
  writeFileSync(file, draw())
}
