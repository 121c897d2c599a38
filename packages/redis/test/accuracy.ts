import { type ChildProcess, fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Algorithm } from '@sluice/core'
import type { ClusterNode, RedisOptions } from 'ioredis'

export const processes = 4
export const calls = 500
export const limit = 1000

/** How the processes reach their server: by a URL, by the nodes of a Cluster, or by options alone. */
export interface Reach {
  readonly url?: string
  readonly startupNodes?: readonly ClusterNode[]
  readonly options?: RedisOptions
}

/** Sends the calls of all processes at once on one key, of which the limit is to be admitted. */
export async function runProcesses(
  algorithm: Algorithm,
  { options, ...reach }: Reach,
): Promise<{ admitted: number; degraded: number }> {
  const task = {
    ...reach,
    options: { ...options, keyPrefix: `test:${randomUUID()}:` },
    policy: { algorithm, limit, window: '1d', ...(algorithm === 'leaky-bucket' && { queue: limit - 1 }) },
    calls,
  }
  const workers = await Promise.all(Array.from({ length: processes }, () => start(task)))
  const results = await Promise.all(workers.map(run))
  const total = (name: 'admitted' | 'degraded'): number =>
    results.reduce((sum, result) => sum + result[name], 0)
  return { admitted: total('admitted'), degraded: total('degraded') }
}

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
