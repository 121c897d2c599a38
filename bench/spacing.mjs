// Spacing of the departures of one leaky bucket that several processes share: each request waits its delayMs on a
// monotonic clock, which all processes of a machine have in common.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { report, table } from './report.mjs'
import { withRedis } from './servers.mjs'

const processes = 4
const requests = 50
const spacingMs = 50
const worker = fileURLToPath(new URL('spacing-worker.mjs', import.meta.url))

/** When all requests of all processes ran: [{ ranMs, dueMs }], in the order in which they ran. */
async function run(task) {
  const workers = Array.from({ length: processes }, (_, place) =>
    fork(worker, [JSON.stringify({ ...task, requests, processes, spacingMs, place })]),
  )
  await Promise.all(workers.map((child) => once(child, 'message')))
  const startMs = Number(process.hrtime.bigint()) / 1e6 + 200
  const results = workers.map((child) => once(child, 'message'))
  for (const child of workers) child.send({ startMs })
  return (await Promise.all(results)).flatMap(([ran]) => ran).sort((a, b) => a.ranMs - b.ranMs)
}

function describe(name, ran) {
  const gaps = ran.slice(1).map(({ ranMs }, i) => ranMs - ran[i].ranMs)
  const sorted = gaps.toSorted((a, b) => a - b)
  const share = (part) => sorted[Math.floor(part * (sorted.length - 1))]
  const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length
  const outOfOrder = ran.slice(1).filter(({ dueMs }, i) => dueMs < ran[i].dueMs).length
  const numbers = [share(0), share(0.01), share(0.5), share(0.99), share(1), mean].map((gap) =>
    gap.toFixed(2),
  )
  return [name, ran.length, ...numbers, outOfOrder]
}

const { version, rows } = await withRedis(async ({ version, url }) => ({
  version,
  rows: [
    describe('control: own timers', await run({})),
    describe('`leaky-bucket`', await run({ url, key: 'first' })),
    describe('control: own timers', await run({})),
    describe('`leaky-bucket`', await run({ url, key: 'second' })),
  ],
}))

report('spacing', 'Spacing of leaky-bucket departures', version, [
  `${processes} processes send ${requests} requests each at once on one key of 20 per second: departures are due ${spacingMs} ms apart. The control has the same processes wait for the same moments, agreed beforehand. Gaps between one start and the next in milliseconds; out of order: starts before one that was due earlier.`,
  table(['', 'started', 'least gap', '1 %', 'median', '99 %', 'largest', 'mean', 'out of order'], rows),
])
