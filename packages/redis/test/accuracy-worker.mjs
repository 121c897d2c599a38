// One process of the accuracy test: sends its calls on one key at once, and tells how many were admitted.
import { Limiter } from '@sluice/core'
import { RedisStore } from '@sluice/redis'
import { Cluster, Redis } from 'ioredis'

const { url, startupNodes, options, policy, calls } = JSON.parse(process.argv[2] ?? '')
const client = startupNodes
  ? new Cluster(startupNodes, options)
  : url
    ? new Redis(url, options)
    : new Redis(options)
const store = new RedisStore(client)
const limiter = new Limiter({ store, name: 'accuracy', timeoutMs: 30_000, onStoreError: 'deny', ...policy })

await limiter.peek({ key: 'warm-up' })
process.send?.('ready')
await new Promise((resolve) => process.once('message', resolve))

const decisions = await Promise.all(Array.from({ length: calls }, () => limiter.consume({ key: 'shared' })))
process.send?.({
  admitted: decisions.filter((decision) => decision.allowed).length,
  degraded: decisions.filter((decision) => decision.degraded).length,
})
await store.close()
client.disconnect()
process.disconnect?.()
