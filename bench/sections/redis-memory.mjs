import { setTimeout } from 'node:timers/promises'
import { contestants, kindOf, peers, strict } from '../contestants/redis.mjs'
import { inRounds } from '../rounds.mjs'

export const limits = [100, 1000, 10_000]
const client = 'ip:203.0.113.7'

/** Bytes of Redis for one client, by limits. */
export function measureRedisMemory(redis, _options, onProgress) {
  const rows = Object.keys({ ...strict, ...peers }).map((name) => ({
    name,
    kind: kindOf(name),
    async measure() {
      const figures = {}
      for (const limit of limits) {
        const { bytes, above } = await bytesOf(redis, name, limit)
        figures[`${limit}/bytes`] = bytes
        figures[`${limit}/above`] = above
      }
      return figures
    },
  }))
  return inRounds(rows, 1, onProgress)
}

/** Bytes of all keys of one client with a used up limit, and how many they are above `SET key 1 PX` on its key. */
export async function bytesOf({ client: redis, url }, name, limit) {
  await redis.flushall()
  // A ring takes what the slices in use take, so it is asked in all of them.
  const parts = name === 'sliding-window-ring' ? 31 : 1
  const sliceMs = 100
  const windowMs = parts > 1 ? (parts - 1) * sliceMs : 86_400_000
  const { ask, close } = await contestants[name](url, { limit, windowMs })
  await redis.flushall()
  const answers = []
  for (let part = 1; part <= parts; part++) {
    if (part > 1) await setTimeout(sliceMs)
    const wanted = Math.floor((limit * part) / parts) - answers.length
    answers.push(...(await Promise.all(Array.from({ length: wanted }, () => ask(client)))))
  }
  await close()
  if (kindOf(name) === 'sluice' && answers.includes(false)) throw new Error(`did not admit ${limit}`)
  const keys = await redis.keys('*')
  const each = await Promise.all(keys.map((key) => redis.memory('USAGE', key, 'SAMPLES', 0)))
  const bytes = each.reduce((sum, one) => sum + one, 0)
  const [key] = keys
  await redis.del(key)
  await redis.set(key, 1, 'PX', 60_000)
  return { bytes, above: bytes - (await redis.memory('USAGE', key)) }
}
