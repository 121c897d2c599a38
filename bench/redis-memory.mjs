// Bytes of Redis for one client: MEMORY USAGE of the key of a limit that is used up, above `SET key 1 PX` on the same key.
import { algorithmNames, Limiter } from '@sluice/core'
import { RedisStore } from '@sluice/redis'
import { policyOf } from './policies.mjs'

export const limits = [100, 1000, 10_000]

/** Bytes by algorithm, one for each of the limits. */
export async function measureRedisMemory(client) {
  const bytes = {}
  for (const algorithm of algorithmNames) {
    bytes[algorithm] = []
    for (const limit of limits) bytes[algorithm].push(await bytesAbove(client, algorithm, limit))
  }
  return bytes
}

async function bytesAbove(client, algorithm, limit) {
  await client.flushall()
  const store = new RedisStore(client)
  const options = { timeoutMs: 60_000, onStoreError: 'deny', ...policyOf(algorithm, limit) }
  const limiter = new Limiter({ store, name: 'api', ...options })
  const request = { key: 'ip:203.0.113.7' }
  const decisions = await Promise.all(Array.from({ length: limit }, () => limiter.consume(request)))
  if (!decisions.every(({ allowed }) => allowed)) throw new Error(`${algorithm} did not admit ${limit}`)
  const [key] = await client.keys('*')
  const used = await client.memory('USAGE', key, 'SAMPLES', 0)
  await client.del(key)
  await client.set(key, 1, 'PX', 60_000)
  const control = await client.memory('USAGE', key)
  await store.close()
  return used - control
}
