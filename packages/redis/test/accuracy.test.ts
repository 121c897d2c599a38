import { type ChildProcess, fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { type Algorithm, algorithmNames } from '@sluice/core'

const processes = 4
const calls = 500
const limit = 1000

async function start(task: object): Promise<ChildProcess> {
  const worker = fork(join(__dirname, 'accuracy-worker.mjs'), [JSON.stringify(task)])
  await once(worker, 'message')
  return worker
}

async function run(worker: ChildProcess): Promise<{ admitted: number; degraded: number }> {
  const result = once(worker, 'message')
  worker.send('go')
  return (await result)[0]
}

describe(`${processes} processes with ${calls} concurrent calls each on one key`, () => {
  test.each<[Algorithm]>(algorithmNames.map((name) => [name]))(
    '%s admits exactly the limit',
    async (algorithm) => {
      const task = {
        url: process.env.REDIS_URL,
        keyPrefix: `test:${randomUUID()}:`,
        policy: { algorithm, limit, window: '1d', ...(algorithm === 'leaky-bucket' && { queue: limit - 1 }) },
        calls,
      }
      const workers = await Promise.all(Array.from({ length: processes }, () => start(task)))
      const results = await Promise.all(workers.map(run))
      const total = (name: 'admitted' | 'degraded'): number =>
        results.reduce((sum, result) => sum + result[name], 0)
      expect({ admitted: total('admitted'), degraded: total('degraded') }).toEqual({
        admitted: limit,
        degraded: 0,
      })
    },
  )
})
