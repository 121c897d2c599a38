// One HTTP server of a measurement, in a process of its own. Arguments: framework, kind, and for `constant-429` the
// reply as JSON. Redis at REDIS_URL. Sends its port to the parent, and its CPU time whenever it is asked.
import { MemoryStore } from '@sluice/core'
import { RedisStore } from '@sluice/redis'
import express from 'express'
import fastify from 'fastify'
import { Redis } from 'ioredis'
import Koa from 'koa'

const [framework, kind, reply] = process.argv.slice(2)
const hello = 'Hello, world'

/** Five headers, as long as those of Sluice. */
const constant = {
  'RateLimit-Policy': '"1000000-per-1m";q=1000000;w=60',
  RateLimit: '"1000000-per-1m";r=999980;t=57',
  'RateLimit-Limit': '1000000',
  'RateLimit-Remaining': '999980',
  'RateLimit-Reset': '57',
}
const client = kind === 'redis' && new Redis(process.env.REDIS_URL)
const plenty = { limit: 1_000_000, window: '1m' }

/** The options of the limiter, for the kinds that have one. */
const options = {
  memory: { store: new MemoryStore(), ...plenty },
  redis: client && { store: new RedisStore(client), timeoutMs: 5000, ...plenty },
  denied: { store: new MemoryStore(), algorithm: 'fixed-window', limit: 1, window: '1d' },
}[kind]
const refusal = reply && JSON.parse(reply)

const frameworks = {
  async express() {
    const { rateLimit } = await import('@sluice/express')
    const app = express()
    const middleware = {
      hook: (_req, _res, next) => next(),
      constant(_req, res, next) {
        for (const name in constant) res.setHeader(name, constant[name])
        next()
      },
      'constant-429': (_req, res) => res.writeHead(429, refusal.headers).end(refusal.body),
    }[kind]
    if (options) app.use(rateLimit(options))
    else if (middleware) app.use(middleware)
    app.get('/', (_req, res) => res.send(hello))
    return app.listen(0, '127.0.0.1')
  },
  async koa() {
    const { rateLimit } = await import('@sluice/koa')
    const app = new Koa()
    const middleware = {
      hook: (_ctx, next) => next(),
      constant(ctx, next) {
        for (const name in constant) ctx.set(name, constant[name])
        return next()
      },
      'constant-429'(ctx) {
        ctx.status = 429
        ctx.set(refusal.headers)
        ctx.body = refusal.body
      },
    }[kind]
    if (options) app.use(rateLimit(options))
    else if (middleware) app.use(middleware)
    app.use((ctx) => {
      ctx.body = hello
    })
    return app.listen(0, '127.0.0.1')
  },
  async fastify() {
    const { rateLimit } = await import('@sluice/fastify')
    const app = fastify()
    const hook = {
      hook: (_request, _reply, done) => done(),
      constant(_request, reply, done) {
        for (const name in constant) reply.header(name, constant[name])
        done()
      },
      'constant-429': (_request, reply) => reply.code(429).headers(refusal.headers).send(refusal.body),
    }[kind]
    if (options) app.addHook('onRequest', rateLimit(options))
    else if (hook) app.addHook('onRequest', hook)
    app.get('/', (_request, reply) => reply.send(hello))
    await app.listen({ port: 0, host: '127.0.0.1' })
    return app.server
  },
}

const server = await frameworks[framework]()
if (!server.listening) await new Promise((resolve) => server.once('listening', resolve))
process.on('disconnect', () => process.exit())
process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send(user + system)
})
process.send(server.address().port)
