// Who is compared in memory. open({ limit, windowMs, keys }) returns ask(key), which resolves to whether the request is
// admitted; `keys` is how many it must be able to hold.
import { createRequire } from 'node:module'
import { algorithmNames, Limiter, MemoryStore } from '@sluice/core'
import { policyOf } from '../policies.mjs'

const require = createRequire(import.meta.url)

const sluice =
  (algorithm) =>
  ({ limit, windowMs, keys }) => {
    const store = new MemoryStore({ maxKeys: keys })
    const limiter = new Limiter({ store, name: 'api', ...policyOf(algorithm, limit, windowMs) })
    return async (key) => (await limiter.consume({ key })).allowed
  }

export const controls = {
  'empty function': () => async () => true,
  'count in a Map': ({ limit }) => {
    const counts = new Map()
    return async (key) => {
      const count = (counts.get(key) ?? 0) + 1
      counts.set(key, count)
      return count <= limit
    }
  },
}

export const own = Object.fromEntries(algorithmNames.map((name) => [name, sluice(name)]))

export const peers = {
  'express-rate-limit': ({ limit, windowMs }) => {
    const { MemoryStore: PeerStore } = require('express-rate-limit')
    const store = new PeerStore()
    store.init({ windowMs })
    return async (key) => (await store.increment(key)).totalHits <= limit
  },
  'rate-limiter-flexible': ({ limit, windowMs }) => {
    const { RateLimiterMemory } = require('rate-limiter-flexible')
    const limiter = new RateLimiterMemory({ points: limit, duration: windowMs / 1000 })
    return (key) =>
      limiter.consume(key, 1).then(
        () => true,
        () => false,
      )
  },
  '@fastify/rate-limit': ({ limit, windowMs, keys }) => {
    const PeerStore = require('@fastify/rate-limit/store/LocalStore.js')
    const store = new PeerStore(false, false, keys)
    return (key) =>
      new Promise((resolve) =>
        store.incr(key, (_, { current }) => resolve(current <= limit), windowMs, limit),
      )
  },
  'koa-ratelimit': ({ limit, windowMs }) => {
    const PeerLimiter = require('koa-ratelimit/limiter/memory.js')
    const db = new Map()
    return async (key) =>
      (await new PeerLimiter({ db, id: key, max: limit, duration: windowMs }).get()).remaining > 0
  },
  '@nestjs/throttler': ({ limit, windowMs }) => {
    const { ThrottlerStorageService } = require('@nestjs/throttler')
    const storage = new ThrottlerStorageService()
    return async (key) => !(await storage.increment(key, windowMs, limit, windowMs, 'default')).isBlocked
  },
}

export const contestants = { ...controls, ...own, ...peers }

export function kindOf(name) {
  if (name in controls) return 'control'
  return name in peers ? 'peer' : 'sluice'
}
