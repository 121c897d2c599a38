// Who is compared over HTTP. Each framework's function serves '/', which admits all, and '/denied', which admits one
// request of a client in a day, and resolves to the listening server. Clients are told apart by address.
import { createRequire } from 'node:module'
import { MemoryStore } from '@sluice/core'
import { RedisStore } from '@sluice/redis'
import { Redis } from 'ioredis'

const require = createRequire(import.meta.url)
const plenty = { limit: 1_000_000, windowMs: 60_000 }
const one = { limit: 1, windowMs: 86_400_000 }
const hello = 'Hello, world'

/** Options of our limiter in each mode; its default algorithm and headers. */
const own = {
  memory: () => ({ store: new MemoryStore() }),
  'strict Redis': (store) => ({ store, denyStaleMs: 0 }),
  'deny cache': (store) => ({ store }),
  reservation: (store) => ({ store, reserve: true }),
}

/** `name`: 'bare', 'constant 429', a mode of ours, or a peer's package and store. */
const kinds = {
  express: ['express-rate-limit, memory', 'express-rate-limit, Redis', 'rate-limiter-flexible, Redis'],
  koa: ['koa-ratelimit, memory', 'koa-ratelimit, Redis'],
  fastify: ['@fastify/rate-limit, memory', '@fastify/rate-limit, Redis'],
}
const controls = ['bare', 'constant 429']
export const namesFor = (framework) => [...controls, ...Object.keys(own), ...kinds[framework]]

export function kindOf(name) {
  if (controls.includes(name)) return 'control'
  return name in own ? 'sluice' : 'peer'
}

/** Options of ours for '/' and '/denied', or undefined. */
function ownOptions(name, url) {
  if (!(name in own)) return undefined
  // Several modes are served at once, and must not take each other for processes of their own limiter.
  const prefix = name.replaceAll(' ', '-')
  const shared = name !== 'memory' && new RedisStore(new Redis(url), { prefix })
  const options = own[name](shared)
  // Over HTTP a decision that had to wait for a busy machine is to be told from one that was not made.
  const common = { timeoutMs: 10_000, onStoreError: 'deny', ...options }
  return [
    { ...common, name: 'plenty', limit: plenty.limit, window: plenty.windowMs },
    { ...common, name: 'one', limit: one.limit, window: one.windowMs },
  ]
}

async function express(name, url, refusal) {
  const { default: create } = await import('express')
  const app = create()
  const handler = (_req, res) => res.send(hello)
  const [first, second] = await expressLimiters(name, url, refusal)
  app.get('/', ...first, handler)
  app.get('/denied', ...second, handler)
  return app.listen(0, '127.0.0.1')
}

async function expressLimiters(name, url, refusal) {
  if (name === 'bare') return [[], []]
  if (name === 'constant 429') {
    return [[], [(_req, res) => res.writeHead(429, refusal.headers).end(refusal.body)]]
  }
  const options = ownOptions(name, url)
  if (options) {
    const { rateLimit } = await import('@sluice/express')
    return options.map((one) => [rateLimit(one)])
  }
  const client = name.endsWith('Redis') && new Redis(url)
  if (name.startsWith('rate-limiter-flexible')) {
    return [plenty, one].map((policy, i) => [flexible(client, policy, `limiter${i}`)])
  }
  const { rateLimit } = require('express-rate-limit')
  const { RedisStore: PeerStore } = require('rate-limit-redis')
  return [plenty, one].map(({ limit, windowMs }, i) => {
    const sendCommand = (...args) => client.call(...args)
    const store = client && { store: new PeerStore({ sendCommand, prefix: `rl${i}:` }) }
    return [rateLimit({ limit, windowMs, standardHeaders: 'draft-8', legacyHeaders: false, ...store })]
  })
}

/** As its documentation shows it, with its memory of denied clients. */
function flexible(storeClient, { limit, windowMs }, keyPrefix) {
  const { RateLimiterRedis } = require('rate-limiter-flexible')
  const limiter = new RateLimiterRedis({
    storeClient,
    keyPrefix,
    points: limit,
    duration: windowMs / 1000,
    inMemoryBlockOnConsumed: limit + 1,
  })
  return (req, res, next) =>
    limiter.consume(req.ip).then(
      (answer) => {
        res.set({
          'X-RateLimit-Limit': limit,
          'X-RateLimit-Remaining': answer.remainingPoints,
          'X-RateLimit-Reset': new Date(Date.now() + answer.msBeforeNext).toISOString(),
        })
        next()
      },
      (answer) => {
        if (answer instanceof Error) return next(answer)
        res
          .set('Retry-After', Math.ceil(answer.msBeforeNext / 1000))
          .status(429)
          .send('Too Many Requests')
      },
    )
}

async function koa(name, url, refusal) {
  const { default: Koa } = await import('koa')
  const app = new Koa()
  const limiters = await koaLimiters(name, url, refusal)
  if (limiters) {
    const [first, second] = limiters
    app.use((ctx, next) => (ctx.path === '/denied' ? second(ctx, next) : first(ctx, next)))
  }
  app.use((ctx) => {
    ctx.body = hello
  })
  return app.listen(0, '127.0.0.1')
}

async function koaLimiters(name, url, refusal) {
  if (name === 'bare') return undefined
  if (name === 'constant 429') {
    const refuse = (ctx) => {
      ctx.status = 429
      ctx.set(refusal.headers)
      ctx.body = refusal.body
    }
    return [(_ctx, next) => next(), refuse]
  }
  const options = ownOptions(name, url)
  if (options) {
    const { rateLimit } = await import('@sluice/koa')
    return options.map((one) => rateLimit(one))
  }
  const limit = require('koa-ratelimit')
  const driver = name.endsWith('Redis') ? 'redis' : 'memory'
  return [plenty, one].map(({ limit: max, windowMs: duration }, i) => {
    const db = driver === 'redis' ? new Redis(url) : new Map()
    return limit({ driver, db, max, duration, namespace: `limit${i}` })
  })
}

async function fastify(name, url, refusal) {
  const { default: create } = await import('fastify')
  const app = create()
  const handler = (_request, reply) => reply.send(hello)
  const [first, second] = await fastifyRoutes(app, name, url, refusal)
  app.get('/', first, handler)
  app.get('/denied', second, handler)
  await app.listen({ port: 0, host: '127.0.0.1' })
  return app.server
}

async function fastifyRoutes(app, name, url, refusal) {
  if (name === 'bare') return [{}, {}]
  if (name === 'constant 429') {
    const refuse = (_request, reply) => reply.code(429).headers(refusal.headers).send(refusal.body)
    return [{}, { onRequest: refuse }]
  }
  const options = ownOptions(name, url)
  if (options) {
    const { rateLimit } = await import('@sluice/fastify')
    return options.map((one) => ({ onRequest: rateLimit(one) }))
  }
  const redis = name.endsWith('Redis') ? { redis: new Redis(url) } : {}
  await app.register(require('@fastify/rate-limit'), { global: false, ...redis })
  return [plenty, one].map(({ limit: max, windowMs: timeWindow }) => ({
    config: { rateLimit: { max, timeWindow } },
  }))
}

export const frameworks = { express, koa, fastify }
