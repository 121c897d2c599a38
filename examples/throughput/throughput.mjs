// Sends the same traffic through limiters that ask Redis more and less often, and prints how many calls each made.
//
//   REDIS_URL=redis://127.0.0.1:6379 node examples/throughput/throughput.mjs
import { randomUUID } from 'node:crypto'
import { Limiter } from '@sluice/core'
import { RedisStore } from '@sluice/redis'
import { Redis } from 'ioredis'

const { REDIS_URL } = process.env
if (!REDIS_URL) {
  console.error('Set REDIS_URL, as in REDIS_URL=redis://127.0.0.1:6379')
  process.exit(1)
}

/** A customer with a large limit, and an attacker who is over a small one. */
const traffic = [
  { who: 'customer, 2,000 requests', limit: 100_000, requests: 2000 },
  { who: 'attacker, 2,000 requests', limit: 100, requests: 2000 },
]
const ways = [
  { way: 'each decision asks', options: { denyStaleMs: 0 } },
  { way: 'denials are remembered (default)', options: {} },
  // Without `nodes` the processes are counted first, which takes a few seconds.
  { way: 'and units are leased', options: { reserve: true, nodes: 1 } },
]

const client = new Redis(REDIS_URL)
const rows = []
for (const { who, limit, requests } of traffic) {
  for (const { way, options } of ways) {
    const store = new RedisStore(client, { prefix: `example:${randomUUID()}` })
    // What reaches the store, seen by standing in front of it.
    let asked = 0
    const counted = new Proxy(store, {
      get(target, name) {
        const value = target[name]
        if (typeof value !== 'function') return value
        return (...call) => {
          if (name === 'consume') asked += 1
          return value.apply(target, call)
        }
      },
    })
    const limiter = new Limiter({ store: counted, limit, window: '1h', timeoutMs: 5000, ...options })
    let admitted = 0
    let sources = {}
    // Twenty requests at a time, as a server has them.
    for (let sent = 0; sent < requests; sent += 20) {
      const batch = Array.from({ length: 20 }, () => limiter.consume({ key: 'user:42' }))
      for (const { allowed, source } of await Promise.all(batch)) {
        admitted += Number(allowed)
        sources = { ...sources, [source]: (sources[source] ?? 0) + 1 }
      }
    }
    await limiter.close()
    await store.close()
    rows.push({ who, way, admitted, 'store calls': asked, ...sources })
  }
}
client.disconnect()

if (process.argv.includes('--json')) console.log(JSON.stringify(rows))
else console.table(rows)
