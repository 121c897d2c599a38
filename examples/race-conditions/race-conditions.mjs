// Enforces one limit from several processes at once, in five ways, and shows what each really admitted.
// Needs REDIS_URL. With --json, prints the rows for a program.
import { fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { strategies } from './strategies.mjs'

const processes = 4
const requests = 50
const limit = 40

const url = process.env.REDIS_URL
if (!url) {
  console.error('Set REDIS_URL to a Redis server, such as redis://127.0.0.1:6379.')
  process.exit(1)
}
const client = new Redis(url, { lazyConnect: true, retryStrategy: () => null })
client.on('error', () => {}) // connect() reports it
await client.connect().catch((error) => {
  console.error(`No Redis answers at REDIS_URL ${url}: ${error.message}`)
  process.exit(1)
})
const keyPrefix = `race:${randomUUID()}:`

/** Starts a worker and waits until it is ready. */
async function start(task) {
  const worker = fork(fileURLToPath(new URL('worker.mjs', import.meta.url)), [
    JSON.stringify({ url, keyPrefix, limit, ...task }),
  ])
  await new Promise((resolve, reject) => {
    worker.once('message', resolve)
    worker.once('exit', () => reject(new Error(`a worker of "${task.strategy}" ended early`)))
  })
  return worker
}

/** Lets a worker send its requests, and waits for its counts; undefined if it died. */
function run(worker) {
  const result = new Promise((resolve) => {
    worker.once('message', (counts) => {
      resolve(counts)
      worker.kill()
    })
    worker.once('exit', () => resolve(undefined))
  })
  worker.send('go')
  return result
}

async function keysLeft() {
  const keys = []
  for await (const batch of client.scanStream({ match: `${keyPrefix}*`, count: 1000 })) keys.push(...batch)
  return keys
}

async function measure(strategy) {
  // One more process is killed after its first write, on a key of its own.
  const dying = await start({ strategy, key: 'dying', requests: 1, dies: true })
  await run(dying)
  const workers = await Promise.all(
    Array.from({ length: processes }, () => start({ strategy, key: 'shared', requests, dies: false })),
  )
  const startedMs = performance.now()
  const counts = await Promise.all(workers.map(run))
  const timeMs = Math.round(performance.now() - startedMs)
  if (counts.includes(undefined)) throw new Error(`a worker of "${strategy}" died`)
  const keys = await keysLeft()
  const expiries = await Promise.all(keys.map((key) => client.pttl(key)))
  if (keys.length > 0) await client.del(keys)
  const sum = (name) => counts.reduce((total, count) => total + count[name], 0)
  return {
    strategy,
    limit,
    admitted: sum('allowed'),
    retries: sum('retries'),
    withoutExpiry: expiries.filter((pttl) => pttl === -1).length,
    timeMs,
  }
}

const rows = []
for (const strategy of Object.keys(strategies)) rows.push(await measure(strategy))
client.disconnect()

if (process.argv.includes('--json')) {
  console.log(JSON.stringify(rows))
} else {
  console.log(`${processes} processes with ${requests} requests each at once, limit ${limit} a day:\n`)
  const table = [
    ['', 'admitted', 'retries', 'keys without expiry', 'ms'],
    ...rows.map((row) => [
      row.strategy,
      `${row.admitted} of ${limit}`,
      row.retries,
      row.withoutExpiry,
      row.timeMs,
    ]),
  ]
  const widths = table[0].map((_, column) => Math.max(...table.map((row) => String(row[column]).length)))
  for (const row of table) {
    const cells = row.map((cell, column) =>
      column === 0 ? String(cell).padEnd(widths[column]) : String(cell).padStart(widths[column]),
    )
    console.log(cells.join('  '))
  }
  console.log(
    '\nKeys without expiry: one more process was killed right after its first write to a key of its own.',
  )
}
