// One process of the reservation test: asks in small groups, closes its limiter, and tells what was admitted.
import { Limiter } from '@sluice/core'
import { RedisStore } from '@sluice/redis'
import { Redis } from 'ioredis'

const { url, keyPrefix, policy, groups, groupSize } = JSON.parse(process.argv[2] ?? '')
const client = new Redis(url, { keyPrefix })
const store = new RedisStore(client)
const limiter = new Limiter({
  store,
  name: 'leased',
  timeoutMs: 30_000,
  onStoreError: 'deny',
  nodes: 4,
  ...policy,
})

await limiter.peek({ key: 'warm-up' })
process.send?.('ready')
await new Promise((resolve) => process.once('message', resolve))

const decisions = []
for (let group = 0; group < groups; group++) {
  const asked = Array.from({ length: groupSize }, () => limiter.consume({ key: 'shared' }))
  decisions.push(...(await Promise.all(asked)))
}
await limiter.close()
process.send?.({
  admitted: decisions.filter(({ allowed }) => allowed).length,
  leased: decisions.filter(({ source }) => source === 'lease').length,
  degraded: decisions.filter(({ degraded }) => degraded).length,
})
await store.close()
client.disconnect()
process.disconnect?.()
