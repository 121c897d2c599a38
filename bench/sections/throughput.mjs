import { runWorker } from '../children.mjs'
import { controls, kindOf, modes, peers, strict } from '../contestants/redis.mjs'
import { inRounds } from '../rounds.mjs'

/** Decisions a second and how long one takes, at library level on Redis. */
export async function measureThroughput({ url, client }, { quick }, onProgress) {
  const names = Object.keys({ ...controls, ...strict, ...modes, ...peers })
  const rows = names.map((name) => ({
    name,
    kind: kindOf(name),
    async measure() {
      await client.flushall()
      return runWorker('throughput.mjs', { name, url, warmUpMs: quick ? 100 : 2000, ms: quick ? 60 : 600 })
    },
  }))
  return inRounds(rows, quick ? 1 : 4, onProgress)
}
