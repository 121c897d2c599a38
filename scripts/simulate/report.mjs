// What was found, as Markdown, and what of it must hold.
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../prepare.mjs'
import { longestCallMs } from './world.mjs'

/** @typedef {import('./scenarios.mjs')} Scenarios */
/** @template T @typedef {T extends (...given: any[]) => Promise<infer R> ? R : never} Found */
/**
 * @typedef {object} Findings
 * @property {number} seed
 * @property {Found<Scenarios['gridRow']>[]} grid
 * @property {Found<Scenarios['callsRow']>[]} calls
 * @property {Found<Scenarios['hardshipRows']>} hardships
 * @property {Found<Scenarios['windowRows']>} windows
 */

/** Rounding of sums of fractions. */
const slack = 1e-6

/** @param {Findings} findings @returns {{ what: string, holds: boolean }[]} */
export function musts({ grid, calls, hardships, windows }) {
  const hundred = grid.filter(({ nodes, limit }) => nodes === 50 && limit === 100)
  return [
    ...hundred.map(({ burstAdmitted }) => ({
      what: `of a burst of exactly 100 on a limit of 100 over 50 processes at least 99 are admitted: ${burstAdmitted}`,
      holds: burstAdmitted >= 99,
    })),
    ...grid.map(({ burst, burstAdmitted, burstHeld, ...row }) => ({
      what: `of a burst at most as many are denied as lie in leases, ${nameOf(row)}: ${burst - burstAdmitted} of ${burstHeld}`,
      holds: burst - burstAdmitted <= burstHeld,
    })),
    ...calls.map(({ nodes, max, perMax }) => ({
      what: `at 1,000,000 a minute at most 1.1 / ${max} calls a request, ${nodes} processes: ${perMax.toFixed(3)} / ${max}`,
      holds: perMax <= 1.1,
    })),
    ...[...grid, ...hardships].map((row) => ({
      what: `at most ${row.bound} beyond the limit, ${nameOf(row)}: ${row.beyond}`,
      holds: row.beyond <= row.bound + slack,
    })),
    ...windows.map(({ algorithm, nodes, bound, mostInWindow }) => ({
      what: `at most ${bound} in any window, ${algorithm} with ${nodes} processes: ${mostInWindow}`,
      holds: mostInWindow <= bound,
    })),
    ...[...grid, ...hardships, ...windows].map((row) => ({
      what: `nobody is denied while the store has units, ${nameOf(row)}: ${row.falseDenials}`,
      holds: row.falseDenials === 0,
    })),
    ...[...grid, ...hardships, ...windows].map((row) => ({
      what: `everybody is answered within two calls to the store, ${nameOf(row)}: ${row.longestWaitMs} ms`,
      holds: row.longestWaitMs <= 2 * longestCallMs,
    })),
  ]
}

/** @param {{ nodes: number, limit?: number, name?: string }} row */
const nameOf = ({ nodes, limit, name }) => `${nodes} processes, ${name ?? `limit ${limit}`}`

/** @param {number} count */
const whole = (count) => count.toLocaleString('en-US', { maximumFractionDigits: 0 })
/** @param {number} count */
const few = (count) => (count >= 100 ? whole(count) : String(Number(count.toFixed(1))))
/** @param {number} share */
const percent = (share) => `${Number((share * 100).toPrecision(3))} %`
/** @param {number} rate */
const rate = (rate) => (rate < 0.1 ? rate.toFixed(4) : rate.toFixed(2))

/** @param {string[]} head @param {string[][]} rows */
function table(head, rows) {
  return [head, head.map(() => '---:'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

/** @param {Findings} findings */
export function report(findings) {
  const { seed, grid, calls, hardships, windows } = findings
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim()
  return `# Leases at the scale of the internet

What \`reserve\` does with 1 to 1000 processes under limits of 100 to 1,000,000 a minute, simulated on a virtual clock.
The leases, the algorithms and the count of processes are the code that ships; time and network are made up: 0.2 to
1.2 ms one way, and 20 ms more for one message in a hundred. Requests come at random times and go to random processes.
The policy is \`token-bucket\` with \`burst\` = limit, at most 50,000; leases are those of \`reserve: true\`: at most 50
units, for 5 s.

Written by \`npm run simulate -- --write --seed ${seed}\` at commit ${commit} and what had been changed since.

![What was admitted beyond the limit, against the bound](simulation.svg)

## Limits and processes

- **burst**: of exactly as many requests as may pass at once, within 100 ms, how many were admitted. The others were
  denied while the store had nothing left and other processes held the rest, which goes back within two seconds.
- **calls**: to Redis for each request, refunds included, at half, 0.8, 1 and 2 times the limit; at twice the limit the
  store begins with nothing left, and the last of these columns is with the deny cache, which is on unless turned off.
- In all runs a request that waited was answered within two calls to the store: the one under way when it came, and its
  own.
- **served 2x**: of what the limit allows, how much was admitted at twice the limit, with the deny cache.
- **beyond**: the most that was admitted in any interval more than \`burst\` and what came back in it, also in a surge within
  half a second, of more than the bucket and all leases have, after 6 s to a minute at 0.8 times the limit.
  **bound**: min(processes x 50, max(processes, burst / 2)).

${table(
  [
    'limit',
    'processes',
    'burst',
    'calls 0.5x',
    '0.8x',
    '1x',
    '2x',
    '2x, deny cache',
    'served 2x',
    'beyond',
    'bound',
  ],
  grid.map(({ limit, nodes, burst, burstAdmitted, calls, servedAtTwice, beyond, bound }) => [
    whole(limit),
    whole(nodes),
    percent(burstAdmitted / burst),
    ...calls.map(rate),
    percent(servedAtTwice),
    few(beyond),
    few(bound),
  ]),
)}

## Calls at 1,000,000 a minute

After a second of traffic, which it takes to learn how much is asked for. In steps of 1 / \`max\` a request; at most 1.1.

${table(
  ['processes', 'max', 'calls a request x max', 'admitted'],
  calls.map(({ nodes, max, perMax, allowed }) => [
    whole(nodes),
    whole(max),
    perMax.toFixed(3),
    percent(allowed),
  ]),
)}

## Hardships

60,000 a minute with \`burst\` 1000, at 0.8 times the limit, then a surge of more than the bucket and all leases have within half a second.
Where processes come and go they do not know their number, but count each other. A crash leaves the units of a lease
charged, as if they had been spent. Here as above nobody was denied while the store had units left.

${table(
  ['hardship', 'processes', 'calls', 'beyond', 'bound'],
  hardships.map(({ name, nodes, calls, beyond, bound }) => [
    name,
    whole(nodes),
    rate(calls),
    few(beyond),
    few(bound),
  ]),
)}

## Windows

6000 a minute; half of it, then twelve times as much for 10 s on either side of a window's edge. A lease ends with the
window or slice in which it was charged, so the bound is that of the algorithm without leases.

${table(
  ['algorithm', 'processes', 'calls', 'most in any minute', 'bound'],
  windows.map(({ algorithm, nodes, calls, mostInWindow, bound }) => [
    algorithm,
    whole(nodes),
    rate(calls),
    whole(mostInWindow),
    whole(bound),
  ]),
)}
`
}

/** @param {string} text @param {string} drawn */
export function write(text, drawn) {
  writeFileSync(join(root, 'docs/simulation.md'), text)
  writeFileSync(join(root, 'docs/simulation.svg'), drawn)
}
