// Microseconds of Redis for one decision, beside INCR on as many keys: of the command, by INFO commandstats, and of the
// whole server, its sockets included, by INFO cpu.
import { algorithmNames, Limiter } from '@sluice/core'
import { RedisStore } from '@sluice/redis'
import { policyOf } from './policies.mjs'

const decisions = 20_000
const connections = 64
const rounds = 3
const keys = Array.from({ length: 10_000 }, (_, i) => `ip:10.0.${i >> 8}.${i & 255}`)

/** The least of some rounds: { incr, [algorithm]: { command, server } } in microseconds. */
export async function measureRedisCpu(client) {
  const best = {}
  for (let round = 0; round < rounds; round++) {
    keep(best, 'incr', await measureIncr(client))
    for (const algorithm of algorithmNames) keep(best, algorithm, await measureLimiter(client, algorithm))
  }
  return best
}

async function measureIncr(client) {
  const clients = Array.from({ length: connections }, () => client.duplicate())
  const callers = clients.map((connection) => (key) => connection.incr(`count:${key}`))
  const result = await microseconds(client, 'incr', callers)
  for (const connection of clients) connection.disconnect()
  return result
}

async function measureLimiter(client, algorithm) {
  const stores = Array.from({ length: connections }, () => new RedisStore(client))
  const callers = stores.map((store) => {
    const options = { timeoutMs: 60_000, onStoreError: 'deny', ...policyOf(algorithm, 10_000) }
    const limiter = new Limiter({ store, name: 'api', ...options })
    return async (key) => {
      const { allowed } = await limiter.consume({ key })
      if (!allowed) throw new Error(`${algorithm} denied`)
    }
  })
  const result = await microseconds(client, 'evalsha', callers)
  for (const store of stores) await store.close()
  return result
}

/** What one request costs when each caller has one in flight, on a connection of its own. */
async function microseconds(client, command, callers) {
  await client.flushall()
  await Promise.all(callers.map((ask) => ask('warm-up')))
  await client.config('RESETSTAT')
  const before = await serverMicroseconds(client)
  let sent = 0
  const run = async (ask) => {
    while (sent < decisions) await ask(keys[(sent++ * 7) % keys.length])
  }
  await Promise.all(callers.map(run))
  const server = ((await serverMicroseconds(client)) - before) / decisions
  const stats = await client.info('commandstats')
  return {
    command: Number(new RegExp(`cmdstat_${command}:.*usec_per_call=([\\d.]+)`).exec(stats)[1]),
    server,
  }
}

async function serverMicroseconds(client) {
  const info = await client.info('cpu')
  const seconds = (kind) => Number(new RegExp(`used_cpu_${kind}:([\\d.]+)`).exec(info)[1])
  return (seconds('user') + seconds('sys')) * 1e6
}

function keep(best, name, { command, server }) {
  const { command: c, server: s } = best[name] ?? {
    command: Number.POSITIVE_INFINITY,
    server: Number.POSITIVE_INFINITY,
  }
  best[name] = { command: Math.min(c, command), server: Math.min(s, server) }
}
