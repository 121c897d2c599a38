// Five ways to enforce one limit. Each opens with a Redis client and a limit, and answers requests by key:
// { allowed, retries }. `afterWrite` is called between two commands, where a process may die.
import { Limiter } from '@sluice/core'
import { RedisStore } from '@sluice/redis'

const daySeconds = 86_400

/** Each process counts for itself. */
function counterInProcess({ limit }) {
  const counts = new Map()
  return async (key) => {
    const count = counts.get(key) ?? 0
    if (count < limit) counts.set(key, count + 1)
    return { allowed: count < limit, retries: 0 }
  }
}

/** Reads the count, compares, writes it back: others read the same count in between. */
function readThenWrite({ client, limit, afterWrite }) {
  return async (key) => {
    const count = Number(await client.get(key))
    if (count >= limit) return { allowed: false, retries: 0 }
    await client.set(key, count + 1, 'EX', daySeconds)
    afterWrite()
    return { allowed: true, retries: 0 }
  }
}

/** The same as a transaction that fails if the key changed since it was read, and then is tried again. */
function watchMulti({ client, limit, afterWrite }) {
  const idle = [] // WATCH belongs to a connection, so each request in flight needs one
  return async (key) => {
    const connection = idle.pop() ?? client.duplicate()
    try {
      for (let retries = 0; ; retries += 1) {
        await connection.watch(key)
        const count = Number(await connection.get(key))
        if (count >= limit) {
          await connection.unwatch()
          return { allowed: false, retries }
        }
        const done = await connection
          .multi()
          .set(key, count + 1, 'EX', daySeconds)
          .exec()
        if (done === null) continue
        afterWrite()
        return { allowed: true, retries }
      }
    } finally {
      idle.push(connection)
    }
  }
}

/** Counts atomically, but the expiry is a command of its own, which a process that dies never sends. */
function incrThenExpire({ client, limit, afterWrite }) {
  return async (key) => {
    const count = await client.incr(key)
    afterWrite()
    if (count === 1) await client.expire(key, daySeconds)
    return { allowed: count <= limit, retries: 0 }
  }
}

/** One script: reads, decides, writes and sets the expiry in one step on the server. */
function sluice({ client, limit, afterWrite }) {
  const store = new RedisStore(client)
  const limiter = new Limiter({
    store,
    name: 'race',
    algorithm: 'fixed-window',
    limit,
    window: '1d',
    timeoutMs: 30_000,
    onStoreError: 'deny',
  })
  return async (key) => {
    const { allowed, degraded } = await limiter.consume({ key })
    if (degraded) throw new Error('the store did not answer')
    afterWrite()
    return { allowed, retries: 0 }
  }
}

export const strategies = {
  'counter in each process': counterInProcess,
  'read, then write': readThenWrite,
  'WATCH and MULTI': watchMulti,
  'INCR, then EXPIRE': incrThenExpire,
  'Sluice (one script)': sluice,
}
