import { once } from 'node:events'
import type { Server } from 'node:http'
import http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import { adapterContract, contractPath, type MakeServer } from '@sluice/testing'
import Koa, { type Middleware } from 'koa'
import Koa2 from 'koa2'
import { type Decision, type RateLimitOptions, rateLimit } from './index.js'

/** Makes sites with one version of Koa. */
function makeServer(Framework: typeof Koa): MakeServer {
  return async (build) => {
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
      if (ctx.path !== contractPath) return
      handled.push(ctx.state.rateLimit)
      ctx.status = Number((await site.handler?.()) ?? 200)
      ctx.body = 'ok'
    })
    const server = await new Promise<Server>((resolve) => {
      const listening = app.listen(0, '127.0.0.1', () => resolve(listening))
    })
    return {
      port: (server.address() as AddressInfo).port,
      handled,
      errors,
      close: () => new Promise((resolve) => server.close(() => resolve())),
    }
  }
}

test('a stream of HTTP/2 that its client resets is not given back', async () => {
  const app = new Koa()
  const guesses: number[] = []
  app.use(rateLimit({ limit: 3, window: '1h', refundWhen: (_ctx, response) => response.status < 400 }))
  app.use(async (ctx) => {
    guesses.push(ctx.res.statusCode)
    await once(ctx.res, 'close')
    ctx.status = 401
  })
  const server = http2.createServer(app.callback()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = http2.connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  for (let i = 0; i < 6; i++) {
    const stream = client.request({ ':path': '/login' })
    stream.on('error', () => {})
    const seen = guesses.length
    const answered = once(stream, 'response').then(() => true)
    while (guesses.length === seen && !(await Promise.race([answered, new Promise(setImmediate)])));
    stream.close(http2.constants.NGHTTP2_CANCEL)
    await once(stream, 'close').catch(() => {})
  }
  client.close()
  await new Promise((resolve) => server.close(resolve))
  expect(guesses).toHaveLength(3)
})

adapterContract('Koa 3', makeServer(Koa))
adapterContract('Koa 2', makeServer(Koa2 as unknown as typeof Koa))
