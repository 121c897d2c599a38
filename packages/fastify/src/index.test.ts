import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { adapterContract, type MakeServer, type Site } from '@sluice/testing'
import fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify'
import { redisStore, timedStore } from '../../redis/test/contract-stores.js'
import {
  type Decision,
  type RateLimitHook,
  type RateLimitOptions,
  rateLimit,
  rateLimitPlugin,
} from './index.js'

/** How a limiter of a site is put on an instance, and on a route. */
interface Form {
  /** What stands for a limiter in a site. */
  limiter(options: RateLimitOptions): unknown
  onInstance(app: FastifyInstance, limiters: readonly unknown[]): Promise<void>
  onRoute(app: FastifyInstance, limiters: readonly unknown[]): RateLimitHook[]
}

const hooks: Form = {
  limiter: rateLimit,
  async onInstance(app, limiters) {
    for (const limit of limiters) app.addHook('onRequest', limit as RateLimitHook)
  },
  onRoute: (_app, limiters) => limiters as RateLimitHook[],
}

/** The plugin for instances, and its hooks for the route. A limiter that is there already is not registered again. */
function plugins(): Form {
  const registered = new Set<unknown>()
  const fresh = (limiters: readonly unknown[]) =>
    limiters.filter((limiter) => registered.size < registered.add(limiter).size)
  return {
    limiter: (options) => options,
    async onInstance(app, limiters) {
      for (const options of fresh(limiters)) await app.register(rateLimitPlugin, options as RateLimitOptions)
      await app.register(rateLimitPlugin, { global: false })
    },
    onRoute: (app, limiters) => fresh(limiters).map((options) => app.rateLimit(options as RateLimitOptions)),
  }
}

const makeServer =
  (makeForm: () => Form): MakeServer =>
  async (build, protocol) => {
    const handled: (Decision | undefined)[] = []
    const errors: unknown[] = []
    const form = makeForm()
    const site: Site = build({
      rateLimit: (options) => form.limiter(options as RateLimitOptions),
      onLimited:
        (reply): RateLimitOptions['onLimited'] =>
        async (_request, fastifyReply, decision) => {
          const custom = await reply(decision)
          if (custom) fastifyReply.code(custom.status).send(custom.body)
        },
    })
    const app = fastify({
      http2: protocol === 'http2',
      trustProxy: site.trust === 'everyone' || (site.trust && '127.0.0.1'),
    } as FastifyServerOptions)
    app.setErrorHandler((error, _request, reply) => {
      errors.push(error)
      return reply.code(500).send('failed')
    })
    app.addHook('onRequest', async (_request, reply) => {
      reply.headers(site.responseHeaders ?? {})
      site.before?.(reply.raw)
    })
    await form.onInstance(app, site.app ?? [])
    app.register(
      async (group) => {
        await form.onInstance(group, site.group ?? [])
        const onRequest = form.onRoute(group, site.route ?? [])
        group.get('/item', { onRequest }, async (request, reply) => {
          handled.push(request.rateLimit)
          const answer = await site.handler?.()
          if (answer instanceof Readable) return answer
          reply.code(Number(answer ?? 200))
          return reply.raw.headersSent ? reply.hijack() : 'ok'
        })
      },
      { prefix: '/api' },
    )
    await app.listen({ port: 0, host: '127.0.0.1' })
    return { port: (app.server.address() as AddressInfo).port, handled, errors, close: () => app.close() }
  }

const byHooks = makeServer(() => hooks)
const byPlugin = makeServer(plugins)
adapterContract('Fastify 5, by hooks', byHooks, { http2: true })
adapterContract('Fastify 5, by the plugin', byPlugin, { http2: true })
adapterContract('Fastify 5, by the plugin, on a clock in Redis', byPlugin, {
  makeStore: timedStore,
  http2: true,
})
adapterContract('Fastify 5, by hooks, on a RedisStore', byHooks, {
  makeStore: redisStore,
  clock: false,
  http2: true,
})
