// The process under test: three limiters on one store, each asked at a steady rate, whatever becomes of the answers.
import { Limiter } from '@sluice/core'
import { RedisStore } from '@sluice/redis'
import { Cluster, Redis } from 'ioredis'
import { at, keysOf, limit, modes, nodes, nowMs, policies } from './load.cjs'

/** @type {import('./run.cjs').Order} */
const { connection, requests, perSecond, timeoutMs } = JSON.parse(process.argv[2] ?? '')

const none = () => ({ storeErrors: { allow: {}, deny: {}, local: {} }, down: [], up: 0, lines: [] })
/** @type {import('./run.cjs').Report} */
const report = { rows: [], counted: [], ...none(), unhandled: [], warnings: [] }
process.on('unhandledRejection', (reason) => report.unhandled.push(`${reason}`))
process.on('warning', (warning) => report.warnings.push(`${warning}`))
const orphaned = () => process.exit(1)
process.once('disconnect', orphaned)

const client =
  'url' in connection
    ? new Redis(connection.url)
    : 'sentinels' in connection
      ? new Redis(connection)
      : new Cluster(connection.startupNodes)
client.on('error', () => {})
const store = new RedisStore(client)

/** @param {import('@sluice/core').SluiceEvent} event */
function onEvent(event) {
  if (event.type === 'store-down') report.down.push(event.error.message)
  if (event.type === 'store-up') report.up += 1
  if (event.type === 'store-error') {
    const counts = report.storeErrors[/** @type {import('./run.cjs').Mode} */ (event.limiter)]
    const { code } = /** @type {Error & { code: string }} */ (event.error)
    counts[code] = (counts[code] ?? 0) + 1
  }
}
const logger = { warn: (/** @type {string} */ line) => report.lines.push(line) }
const limiters = modes.map((mode) => {
  const options = { onStoreError: mode, timeoutMs, nodes, onEvent, logger }
  return { mode, limiter: new Limiter({ name: mode, store, policies, ...options }) }
})

/**
 * @param {(typeof limiters)[number]} of
 * @param {string} key
 * @param {number} dueMs
 */
async function ask({ mode, limiter }, key, dueMs) {
  const askedMs = nowMs()
  /** @type {Partial<import('./run.cjs').Row>} */
  const outcome = await limiter.consume({ key }).then(
    ({ allowed, reason, source, degraded }) => ({ allowed, reason, source, degraded }),
    (error) => ({ thrown: `${error}` }),
  )
  report.rows.push({ mode, key, dueMs, askedMs, settledMs: nowMs(), ...outcome })
}

/**
 * @param {() => Promise<unknown>} question
 * @param {number} forMs how long to ask at most
 */
async function askUntil(question, forMs) {
  const lastMs = nowMs() + forMs
  while (!(await question()) && nowMs() < lastMs) await at(nowMs() + 25)
}

// The store has every connection and script that it will need, the code is warm, and a slow start is over.
const keys = [...new Set(keysOf(requests))]
await askUntil(async () => {
  let degraded = 0
  for (const key of keys) {
    const decisions = await Promise.all(limiters.map(({ limiter }) => limiter.peek({ key })))
    degraded += decisions.filter((decision) => decision.degraded).length
  }
  return degraded === 0 && report.down.length === report.up
}, 10_000)
Object.assign(report, none())

process.send?.('ready')
const { startMs } = await new Promise((resolve) => process.once('message', resolve))
const answers = []
for (const [i, key] of keysOf(requests).entries()) {
  const dueMs = startMs + (i * 1000) / perSecond
  await at(dueMs)
  for (const limiter of limiters) answers.push(ask(limiter, key, dueMs))
}
await Promise.all(answers)

// A store is up once it has answered for a while, which what is asked here sees to; it counts nothing.
await askUntil(async () => {
  await limiters[0]?.limiter.peek({ key: 'after' })
  return report.down.length === report.up
}, 5000)
for (const { mode, limiter } of limiters) {
  for (const key of keys) {
    const { policies, degraded } = await limiter.peek({ key })
    const [day] = policies
    report.counted.push({ mode, key, units: day && !degraded ? limit - day.remaining : undefined })
  }
  await limiter.close()
}
await store.close()
client.disconnect()
// From here on it has to end by itself.
process.off('disconnect', orphaned)
process.send?.(report, () => process.disconnect())
