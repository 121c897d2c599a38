// Starts workers of node:cluster that count in memory, and prints what each admitted and warned of.
import cluster from 'node:cluster'
import { Limiter } from '@sluice/core'

const workers = 4
const callsPerWorker = 15

async function count() {
  const warnings = /** @type {string[]} */ ([])
  const logger = { warn: (/** @type {string} */ line) => void warnings.push(line) }
  const limiter = new Limiter({ algorithm: 'gcra', limit: 10, window: '1d', logger })
  let admitted = 0
  for (let i = 0; i < callsPerWorker; i++) {
    if ((await limiter.consume({ key: 'k' })).allowed) admitted += 1
  }
  return { admitted, warnings }
}

if (cluster.isPrimary) {
  const results = [await count()]
  for (let i = 0; i < workers; i++) cluster.fork()
  cluster.on('message', (worker, result) => {
    results.push(result)
    worker.disconnect()
    if (results.length === 1 + workers) console.log(JSON.stringify(results))
  })
} else {
  process.send?.(await count())
}
