// Simulates leases at the scale of the internet: `npm run simulate -- [--seed 1] [--write] [--tiny]`. Ends with 1 if
// something does not hold that must. With --write: puts what it finds into docs/simulation.md and its chart.
import { parseArgs } from 'node:util'
import { chart } from './chart.mjs'
import { musts, report, write } from './report.mjs'
import { callsRow, gridRow, hardshipRows, windowRows } from './scenarios.mjs'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    write: { type: 'boolean', default: false },
    tiny: { type: 'boolean', default: false },
  },
})
const seed = Number(values.seed)
if (!Number.isInteger(seed) || seed < 0) throw new Error(`--seed is ${values.seed}. Expected a whole number`)
const { tiny } = values
const sizes = tiny ? [1, 50] : [1, 4, 10, 50, 1000]
const limits = tiny ? [100, 1000] : [100, 1000, 10_000, 100_000, 1_000_000]
const requests = tiny ? 1000 : 40_000

const grid = []
for (const limit of limits) for (const nodes of sizes) grid.push(await gridRow(nodes, limit, seed, requests))
const calls = []
for (const max of [50, 500])
  for (const nodes of tiny ? [] : [1, 4, 10]) calls.push(await callsRow(nodes, max, seed))
const hardships = await hardshipRows(tiny ? [10] : [10, 50], seed)
const windows = await windowRows(tiny ? [4] : [4, 50], seed)

const found = { seed, grid, calls, hardships, windows }
const text = report(found)
console.log(text)
const failed = musts(found).filter(({ holds }) => !holds)
for (const { what } of failed) console.error(`does not hold: ${what}`)
if (failed.length > 0) process.exitCode = 1
if (values.write && !tiny) write(text, chart(grid))
