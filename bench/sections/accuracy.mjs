import clusters from '../../scripts/servers/cluster.cjs'
import sentinel from '../../scripts/servers/sentinel.cjs'
import { startWorker } from '../children.mjs'
import { kindOf, modes, peers, strict } from '../contestants/redis.mjs'
import { inRounds } from '../rounds.mjs'
import windows from '../windows.cjs'

const processes = 4
const burst = { limit: 1000, windowMs: 86_400_000, requests: 500 }
const hammer = { limit: 200, windowMs: 1000, callers: 8, windows: 2.2 }

/** How many of one key's requests several processes admit, all at once, and most in any window of a limit. */
export async function measureAccuracy({ url, client }, { quick }, onProgress) {
  const row = (name, task) => ({
    name,
    kind: kindOf(name),
    async measure() {
      await client.flushall()
      return measure({ name, burst, ...task })
    },
  })
  const rows = Object.keys({ ...strict, ...modes, ...peers }).map((name) => row(name, { url, hammer }))
  const measured = await inRounds(rows, 1, onProgress)
  if (quick) return measured
  return [
    ...measured,
    ...(await onTopology(
      'Cluster',
      () => clusters.startCluster(),
      onProgress,
      ({ startupNodes }) => ({
        cluster: startupNodes,
      }),
    )),
    ...(await onTopology(
      'Sentinel',
      () => sentinel.startSentinel(),
      onProgress,
      ({ sentinels }) => ({
        sentinels,
      }),
    )),
  ]
}

async function onTopology(topology, start, onProgress, taskOf) {
  const servers = await start()
  try {
    const rows = Object.keys(strict).map((name) => ({
      name: `${name}, ${topology}`,
      kind: 'sluice',
      // Keys are by algorithm, so that each finds its own unused.
      measure: () => measure({ name, burst, ...taskOf(servers) }),
    }))
    return await inRounds(rows, 1, onProgress)
  } finally {
    await servers.stop()
  }
}

async function measure(task) {
  const workers = Array.from({ length: processes }, (_, i) => {
    const own = task.hammer ? { ...task, hammer: { ...task.hammer, first: i === 0 } } : task
    return startWorker('accuracy.mjs', own)
  })
  try {
    await started(workers)
    if (task.hammer) await started(workers, task.hammer.windowMs)
    const reports = await Promise.all(workers.map(({ told }) => told()))
    const figures = { burst: reports.reduce((sum, { burst: admitted }) => sum + admitted, 0) }
    if (task.hammer) {
      const spans = reports.flatMap(({ admitted }) => admitted)
      figures.mostInWindow = windows.mostWithin(spans, task.hammer.windowMs)
    }
    return figures
  } finally {
    await Promise.all(workers.map(({ stop }) => stop()))
  }
}

/** Starts all together once they are ready; with a window, at the beginning of one by the clock. */
async function started(workers, windowMs) {
  await Promise.all(workers.map(({ told }) => told()))
  const nowMs = Number(process.hrtime.bigint()) / 1e6
  const waitMs = windowMs ? windowMs - ((Date.now() + 100) % windowMs) + 100 : 100
  for (const child of workers) child.tell({ startMs: nowMs + waitMs })
}
