// Writes what the fault matrix found as Markdown.
import { execFileSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { basename } from 'node:path'
import { serverBinary } from '../servers/redis.cjs'
import { limit, localShare, nodes } from './load.cjs'
import { fewPercent, graceMs, lostWithinMs, normalWithinMs } from './tally.cjs'

/** @typedef {import('./matrix.mjs').Played} Played */
/** @typedef {import('./tally.cjs').Cell} Cell */

/**
 * @param {string[]} head
 * @param {(string | number)[][]} rows
 * @param {number} words how many columns read from the left
 */
function table(head, rows, words) {
  const line = (/** @type {(string | number)[]} */ cells) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map((_, i) => (i < words ? '---' : '---:'))), ...rows.map(line)].join('\n')
}

const count = (/** @type {number} */ number) => number.toLocaleString('en')
const ms = (/** @type {number | undefined} */ number, digits = 0) =>
  number === undefined || Number.isNaN(number) ? '' : number === Infinity ? 'never' : number.toFixed(digits)

/** @param {Cell} cell */
function degradedOf({ degraded: { served, denied, refused } }) {
  const kinds = Object.entries({ served, denied, refused }).filter(([, number]) => number > 0)
  return kinds.map(([kind, number]) => `${count(number)} ${kind}`).join(', ')
}

/** @param {Cell} cell */
function causesOf({ causes }) {
  const names = ['TIMEOUT', 'FAILED', 'DOWN'].map((name) => count(causes[`SLUICE_STORE_${name}`] ?? 0))
  return names.join(' / ')
}

/** @param {Played[]} played */
export function tablesOf(played) {
  const cells = table(
    [
      'fault',
      'mode',
      'served',
      'denied (429)',
      'refused (503)',
      'failed',
      'degraded, of these',
      'late / failed / not asked',
      'store admitted',
      'store holds',
      'most of a key: store',
      'local',
      'p50, ms',
      'p99',
      'worst',
      'normal after, ms',
    ],
    played.flatMap(({ fault, cells }) =>
      cells.map((cell) => [
        fault.name,
        cell.mode,
        count(cell.served),
        count(cell.denied),
        count(cell.refused),
        cell.failed,
        degradedOf(cell),
        causesOf(cell),
        count(cell.admitted),
        count(cell.held),
        cell.mostOfKey,
        cell.localMost,
        ms(cell.waitMs.half, 1),
        ms(cell.waitMs.p99, 1),
        ms(cell.waitMs.worst, 1),
        ms(cell.normalMs),
      ]),
    ),
    2,
  )
  const faults = table(
    [
      'fault',
      'cause told by `store-down`',
      'struck',
      'no fresh connection for, ms',
      '`store-down`',
      '`store-up`',
      'log lines',
      'unhandled rejections',
      'process warnings',
      'writes perhaps lost',
      'longest stall, ms',
      'played',
    ],
    played.map(({ fault, result: { report, strikes, awayMs }, cells, stallMs, plays }) => [
      fault.name,
      report.down.join('; '),
      strikes,
      ms(awayMs),
      report.down.length,
      report.up,
      report.lines.length,
      report.unhandled.length,
      report.warnings.length,
      fault.takenOver ? cells.reduce((sum, { perhapsLost }) => sum + perhapsLost, 0) : '',
      ms(stallMs),
      plays,
    ]),
    2,
  )
  return `## Requests\n\n${cells}\n\n## Faults\n\n${faults}`
}

/** The commit whose code was tried. */
function commit() {
  const git = (/** @type {string[]} */ ...args) => execFileSync('git', args, { encoding: 'utf8' }).trim()
  const changed = git('status', '--porcelain', '--', 'packages')
  return `\`${git('rev-parse', '--short', 'HEAD')}\`${changed && ' with changes'}`
}

function versions() {
  const server = /v=(\S+)/.exec(execFileSync(serverBinary(), ['--version'], { encoding: 'utf8' }))
  const { version } = createRequire(import.meta.url)('ioredis/package.json')
  return `${basename(serverBinary())} ${server?.[1]}, Node.js ${process.version}, ioredis ${version}`
}

/**
 * @param {Played[]} played
 * @param {import('./run.cjs').Size} size
 */
export function pageOf(played, { requests, perSecond, timeoutMs }) {
  const third = (requests / perSecond / 3).toFixed(1)
  return `# Fault matrix

What the limiter does while its Redis fails. Written by \`npm run test:chaos -- --write\` at commit ${commit()}: ${versions()}. All played in one run; none of its assertions failed.

## What is played

One process has three limiters on one \`RedisStore\`, with \`onStoreError\` \`'allow'\`, \`'deny'\` and \`'local'\`, \`timeoutMs: ${timeoutMs}\`, \`nodes: ${nodes}\`, and a client with default settings. Each is asked ${count(requests)} times at ${perSecond} per second, whether or not answers come. The fault begins after one third (${third} s) and ends after two. Another process plays the faults: a TCP proxy between client and server, or something done to the real server. The process under test is never restarted and never told.

A key may have ${limit} in a day, and a second policy makes each decision one over two keys. Half of the requests go to ${requests / 100} keys that reach their limit before the fault begins, half to ${requests / 50} keys that are still below it then.

## How to read it

- **served**, **denied**, **refused**, **failed**: all requests by their answer: allowed; denied for want of quota (429); refused for a store fault (503); thrown.
- **degraded, of these**: decided without the store, by kind. **late / failed / not asked**: why: no answer within the budget; an error of Redis or of the connection; the circuit breaker did not ask.
- **store admitted**: requests that the store let pass. **store holds**: units counted in Redis at the end, of the same keys. Where more is held than was admitted, a charge was made whose answer came too late or not at all. After a restart that lost the counts, less is held.
- **most of a key**: the most that one key was given by the store in the whole run, and locally during the fault.
- **p50, p99, worst**: from the moment the limiter was asked until it answered.
- **normal after**: from the moment a fresh connection was served to the first answer of the store after the last degraded decision. A fresh connection is tried every 25 ms; it is served when a write over it is answered within ${timeoutMs} ms, and so are the nine that follow. Through Sentinels it is a connection to the master that they name; in a Cluster, one to the master of each third of the slots.
- **struck**: how often a repeated fault was played: scripts flushed, slots moved. **longest stall**: for how long one of the two processes stood still. Where that is more than ${graceMs} ms the machine was too busy to tell waits; such a fault is played again, five times at most, unless something else was wrong than what a busy machine makes late.

## What is asserted of every cell

- The process does not crash and ends by itself; no unhandled rejection, no process warning, nothing thrown.
- No wait above \`timeoutMs\` + ${graceMs} ms, which is ${timeoutMs + graceMs} ms.
- The store admits at most the limit of each key: ${limit}, and again ${limit} where the server restarted empty. Where a replica took over, replication being asynchronous, the new master may lack the last writes: the bound of a key is then ${limit} + those of its requests that were admitted in the last ${lostWithinMs} ms before the fault, over all keys the **writes perhaps lost**. Some key reaches its limit.
- Degraded decisions: none served under \`'deny'\`; under \`'local'\` at most the share of this process for each key, ${limit} / ${nodes} = ${localShare}; under \`'allow'\` nothing denied or refused. Each one raised one \`store-error\`.
- An outage is told once: one \`store-down\`, one \`store-up\`, a line in the log for each. Where only some decisions miss the store there may be more or none, as many of one as of the other. A fault without an outage costs no \`store-down\` and at most ${fewPercent} % degraded decisions.
- Normal service within ${normalWithinMs} ms of the moment a fresh connection was served, in every topology: the time in which the client finds the new master is included.

${tablesOf(played)}
`
}
