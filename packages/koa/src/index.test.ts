import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { adapterContract, contractPath, type MakeServer } from '@sluice/testing'
import Koa, { type Middleware } from 'koa'
import Koa2 from 'koa2'
import { redisStore, timedStore } from '../../redis/test/contract-stores.js'
import { type Decision, type RateLimitOptions, rateLimit } from './index.js'

/** Makes sites with one version of Koa. */
function makeServer(Framework: typeof Koa): MakeServer {
  return async (build, protocol) => {
    const handled: (Decision | undefined)[] = []
    const errors: unknown[] = []
    const site = build({
      rateLimit: (options) => rateLimit(options as RateLimitOptions),
      onLimited:
        (reply): RateLimitOptions['onLimited'] =>
        async (ctx, _next, decision) => {
          const custom = await reply(decision)
          if (custom) Object.assign(ctx, custom)
        },
    })
    const app = new Framework(site.trust && { proxy: true, maxIpsCount: site.trust === 'everyone' ? 0 : 1 })
    // What it would write of clients that leave is no error of a limiter.
    app.silent = true
    app.use(async (ctx, next) => {
      try {
        ctx.set(site.responseHeaders ?? {})
        site.before?.(ctx.res)
        if (ctx.res.headersSent) ctx.respond = false
        await next()
      } catch (error) {
        errors.push(error)
        ctx.status = 500
        ctx.body = 'failed'
      }
    })
    for (const limit of [...(site.app ?? []), ...(site.group ?? []), ...(site.route ?? [])]) {
      app.use(limit as Middleware)
    }
    app.use(async (ctx) => {
      if (ctx.path !== contractPath || !['GET', 'HEAD'].includes(ctx.method)) return
      handled.push(ctx.state.rateLimit)
      const answer = await site.handler?.()
      if (!(answer instanceof Readable)) ctx.status = Number(answer ?? 200)
      ctx.body = answer instanceof Readable ? answer : 'ok'
    })
    const listener = app.callback()
    const server = protocol === 'http2' ? http2.createServer(listener) : http.createServer(listener)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return {
      port: (server.address() as AddressInfo).port,
      handled,
      errors,
      close: () => new Promise((resolve) => server.close(() => resolve())),
    }
  }
}

const koa3 = makeServer(Koa)
const koa2 = makeServer(Koa2 as unknown as typeof Koa)
adapterContract('Koa 3', koa3, { http2: true })
// Koa 2 leaves a HEAD request over HTTP/2 without an answer.
adapterContract('Koa 2', koa2)
adapterContract('Koa 3, on a clock in Redis', koa3, { makeStore: timedStore, http2: true })
adapterContract('Koa 2, on a RedisStore', koa2, { makeStore: redisStore, clock: false })
