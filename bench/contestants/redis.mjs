// Who is compared at library level on Redis. open(url, { limit, windowMs }) resolves to { ask(key), close() }; ask
// resolves to whether the request is admitted.
import { createRequire } from 'node:module'
import { algorithmNames, Limiter } from '@sluice/core'
import { RedisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { policyOf } from '../policies.mjs'

const require = createRequire(import.meta.url)

const onClient = (make, clientOptions) => async (url, options) => {
  const client = new Redis(url, { ...clientOptions, maxRetriesPerRequest: 1 })
  const ask = await make(client, options)
  return { ask, close: () => client.disconnect() }
}

/**
 * `more`: further options of the limiter. `connect` makes a client of servers of another topology than one server;
 * `duplicate: false` shares it, which waits for a slow server as long as it takes.
 */
const sluice =
  (policies, more = {}) =>
  async (url, { limit, windowMs, connect = () => new Redis(url), duplicate }) => {
    const client = connect()
    const store = new RedisStore(client, { duplicate })
    await store.ready({ timeoutMs: 60_000 })
    let lastWarning = 'decided without the store'
    const warn = (line) => {
      lastWarning = line
    }
    const limiter = new Limiter({
      store,
      logger: { warn },
      name: 'api',
      timeoutMs: 60_000,
      onStoreError: 'deny',
      denyStaleMs: 0,
      ...policies(limit, windowMs),
      ...more,
    })
    return {
      async ask(key) {
        const { allowed, degraded } = await limiter.consume({ key })
        if (degraded) throw new Error(lastWarning)
        return allowed
      },
      async close() {
        await limiter.close()
        await store.close()
        client.disconnect()
      },
    }
  }

const of = (algorithm) => (limit, windowMs) => policyOf(algorithm, limit, windowMs)
const three = (limit, windowMs) => ({
  policies: ['first', 'second', 'third'].map((name) => ({ name, ...policyOf('gcra', limit, windowMs) })),
})

export const controls = {
  INCR: onClient((client) => async (key) => (await client.incr(`count:${key}`)) > 0),
  'INCR, auto-pipelined': onClient((client) => async (key) => (await client.incr(`count:${key}`)) > 0, {
    enableAutoPipelining: true,
  }),
  'EVALSHA of a trivial script': onClient(async (client) => {
    const sha = await client.script('LOAD', 'return 1')
    return async (key) => (await client.evalsha(sha, 1, key)) === 1
  }),
}

/** Each algorithm, every request asked of Redis. */
export const strict = Object.fromEntries(algorithmNames.map((name) => [name, sluice(of(name))]))

export const modes = {
  'gcra, deny cache': sluice(of('gcra'), { denyStaleMs: 1000 }),
  'gcra, reservation of 50': sluice(of('gcra'), { reserve: { max: 50 } }),
  'gcra, reservation of 500': sluice(of('gcra'), { reserve: { max: 500 } }),
  'sliding-window-counter, reservation of 50': sluice(of('sliding-window-counter'), { reserve: { max: 50 } }),
}

export const threePolicies = { 'gcra, three policies': sluice(three) }

export const peers = {
  'rate-limit-redis': onClient((client, { limit, windowMs }) => {
    const { RedisStore: PeerStore } = require('rate-limit-redis')
    const store = new PeerStore({ sendCommand: (...args) => client.call(...args) })
    store.init({ windowMs })
    return async (key) => (await store.increment(key)).totalHits <= limit
  }),
  'rate-limiter-flexible': onClient((client, { limit, windowMs }) => {
    const { RateLimiterRedis } = require('rate-limiter-flexible')
    const limiter = new RateLimiterRedis({ storeClient: client, points: limit, duration: windowMs / 1000 })
    return (key) => limiter.consume(key, 1).then(() => true, refused)
  }),
  '@fastify/rate-limit': onClient((client, { limit, windowMs }) => {
    const PeerStore = require('@fastify/rate-limit/store/RedisStore.js')
    const store = new PeerStore(false, false, client)
    return (key) =>
      new Promise((resolve, reject) =>
        store.incr(
          key,
          (error, reply) => (error ? reject(error) : resolve(reply.current <= limit)),
          windowMs,
          limit,
        ),
      )
  }),
  'koa-ratelimit': onClient((client, { limit, windowMs }) => {
    const PeerLimiter = require('koa-ratelimit/limiter/redis.js')
    return async (key) =>
      (await new PeerLimiter({ db: client, id: key, max: limit, duration: windowMs }).get()).remaining > 0
  }),
  '@nestjs/throttler': onClient((client, { limit, windowMs }) => {
    const { ThrottlerStorageRedisService } = require('@nest-lab/throttler-storage-redis')
    const storage = new ThrottlerStorageRedisService(client)
    return async (key) => !(await storage.increment(key, windowMs, limit, windowMs, 'default')).isBlocked
  }),
}

/** rate-limiter-flexible rejects with its answer, or with an Error. */
function refused(answer) {
  if (answer instanceof Error) throw answer
  return false
}

/** All by name. */
export const contestants = { ...controls, ...strict, ...modes, ...threePolicies, ...peers }

export function kindOf(name) {
  if (name in controls) return 'control'
  return name in peers ? 'peer' : 'sluice'
}
