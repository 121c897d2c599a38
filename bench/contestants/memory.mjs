// Who is compared in memory. open({ limit, windowMs, keys }) returns { ask(key), admits(answer) }, of which only `ask` is
// timed; `keys` is how many it must be able to hold.
import { createRequire } from 'node:module'
import { algorithmNames, Limiter, MemoryStore, resolvePolicy } from '@sluice/core'
import { policyOf } from '../policies.mjs'

const require = createRequire(import.meta.url)

/** A decision as users ask for it. */
const whole =
  (algorithm) =>
  ({ limit, windowMs, keys }) => {
    const store = new MemoryStore({ maxKeys: keys })
    const limiter = new Limiter({ store, name: 'api', ...policyOf(algorithm, limit, windowMs) })
    return { ask: (key) => limiter.consume({ key }), admits: ({ allowed }) => allowed }
  }

/** The store without a limiter before it, as the stores of most peers are compared. */
const alone =
  (algorithm) =>
  ({ limit, windowMs, keys }) => {
    const store = new MemoryStore({ maxKeys: keys })
    const policy = resolvePolicy({ name: 'one', ...policyOf(algorithm, limit, windowMs) })
    const tail = `}:api:${policy.keySuffix}`
    const check = (owner) => ({ key: `1:{${owner}${tail}`, owner, tail, policy, least: 1, most: 1 })
    return { ask: (key) => store.consume([check(key)]), admits: ([{ allowed }]) => allowed }
  }

export const controls = {
  'empty function': () => ({ ask: async () => true, admits: (allowed) => allowed }),
  'count in a Map': ({ limit }) => {
    const counts = new Map()
    const ask = async (key) => {
      const count = (counts.get(key) ?? 0) + 1
      counts.set(key, count)
      return count
    }
    return { ask, admits: (count) => count <= limit }
  },
}

export const own = Object.fromEntries(algorithmNames.map((name) => [name, whole(name)]))
export const stores = Object.fromEntries(algorithmNames.map((name) => [`${name}, store alone`, alone(name)]))

export const peers = {
  'express-rate-limit': ({ limit, windowMs }) => {
    const { MemoryStore: PeerStore } = require('express-rate-limit')
    const store = new PeerStore()
    store.init({ windowMs })
    return { ask: (key) => store.increment(key), admits: ({ totalHits }) => totalHits <= limit }
  },
  'rate-limiter-flexible': ({ limit, windowMs }) => {
    const { RateLimiterMemory } = require('rate-limiter-flexible')
    const limiter = new RateLimiterMemory({ points: limit, duration: windowMs / 1000 })
    // Rejects where it does not admit.
    return { ask: (key) => limiter.consume(key, 1), admits: () => true }
  },
  '@fastify/rate-limit': ({ limit, windowMs, keys }) => {
    const PeerStore = require('@fastify/rate-limit/store/LocalStore.js')
    const store = new PeerStore(false, false, keys)
    const ask = (key) =>
      new Promise((resolve) => store.incr(key, (_, reply) => resolve(reply), windowMs, limit))
    return { ask, admits: ({ current }) => current <= limit }
  },
  'koa-ratelimit': ({ limit, windowMs }) => {
    const PeerLimiter = require('koa-ratelimit/limiter/memory.js')
    const db = new Map()
    return {
      ask: (key) => new PeerLimiter({ db, id: key, max: limit, duration: windowMs }).get(),
      admits: ({ remaining }) => remaining > 0,
    }
  },
  '@nestjs/throttler': ({ limit, windowMs }) => {
    const { ThrottlerStorageService } = require('@nestjs/throttler')
    const storage = new ThrottlerStorageService()
    return {
      ask: (key) => storage.increment(key, windowMs, limit, windowMs, 'default'),
      admits: ({ isBlocked }) => !isBlocked,
    }
  },
}

export const contestants = { ...controls, ...own, ...stores, ...peers }

export function kindOf(name) {
  if (name in controls) return 'control'
  return name in peers ? 'peer' : 'sluice'
}
