// Plays every fault and prints what became of the requests. Ends with exit code 1 if a cell failed, and names it.
//   --only <part of a name>   plays the faults of such names
//   --write                   puts the tables into docs/fault-matrix.md too; only where all faults are played
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { root } from '../prepare.mjs'
import { faults } from './faults.cjs'
import { pageOf, tablesOf } from './page.mjs'
import { run } from './run.cjs'
import { graceMs, tally } from './tally.cjs'

const size = { requests: 2500, perSecond: 250, timeoutMs: 100 }

/** How often a fault is played at most, where a process stood still for longer than a request may be late. */
const mostPlays = 6

const { only = '', write } = parseArgs({
  options: { only: { type: 'string' }, write: { type: 'boolean' } },
}).values
if (only && write) throw new Error('--write is for all faults: leave --only out.')

/** @param {import('./run.cjs').Fault} fault */
async function play(fault) {
  for (let plays = 1; ; plays += 1) {
    const result = await run(fault, size)
    const one = { fault, result, plays, stallMs: stallOf(result), ...tally(fault, result, size) }
    // A machine too busy to tell times excuses nothing else.
    const excused = one.stallMs > graceMs && [one, ...one.cells].every(({ broken }) => broken.length === 0)
    if (!excused || plays === mostPlays) return one
    console.error(
      `${fault.name}: a process stood still for ${one.stallMs.toFixed(0)} ms, so it is played again`,
    )
  }
}

/**
 * The longest for which one of the two processes stood still, in milliseconds.
 * @param {import('./run.cjs').Run} result
 */
function stallOf({ stallMs, report: { rows } }) {
  return Math.max(stallMs, ...rows.map(({ askedMs, dueMs }) => askedMs - dueMs))
}

/** @typedef {Awaited<ReturnType<typeof play>>} Played */

/** @param {Played} one */
function complaints({ fault, cells, broken, strained, stallMs }) {
  const ofCells = cells.flatMap(({ mode, broken, strained, late }) =>
    [...broken, ...strained, ...late].map((what) => `${mode}: ${what}`),
  )
  const stood = stallMs > graceMs ? ` (a process stood still for ${stallMs.toFixed(0)} ms)` : ''
  return [...broken, ...strained, ...ofCells].map((what) => `${fault.name}: ${what}${stood}`)
}

/** @type {Played[]} */
const played = []
/** @type {string[]} */
const failed = []
for (const fault of faults.filter(({ name }) => name.includes(only))) {
  console.error(fault.name)
  try {
    const one = await play(fault)
    played.push(one)
    failed.push(...complaints(one))
  } catch (error) {
    failed.push(`${fault.name}: ${error instanceof Error ? error.message : error}`)
  }
}

console.log(tablesOf(played))
for (const what of failed) console.error(`FAILED ${what}`)
console.error(`${played.length} faults played, ${failed.length} failures`)
if (failed.length > 0 || played.length === 0) process.exitCode = 1
else if (write) writeFileSync(join(root, 'docs/fault-matrix.md'), pageOf(played, size))
