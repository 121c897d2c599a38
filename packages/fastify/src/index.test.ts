import type { AddressInfo } from 'node:net'
import { adapterContract, type MakeServer } from '@sluice/testing'
import fastify, { type onRequestAsyncHookHandler } from 'fastify'
import { type Decision, type RateLimitOptions, rateLimit } from './index.js'

const makeServer: MakeServer = async (build) => {
  const handled: (Decision | undefined)[] = []
  const errors: unknown[] = []
  const site = build({
    rateLimit: (options) => rateLimit(options as RateLimitOptions),
    onLimited:
      (reply): RateLimitOptions['onLimited'] =>
      async (_request, fastifyReply, decision) => {
        const custom = await reply(decision)
        if (custom) fastifyReply.code(custom.status).send(custom.body)
      },
  })
  const app = fastify(site.trust && { trustProxy: site.trust === 'everyone' ? true : '127.0.0.1' })
  app.setErrorHandler((error, _request, reply) => {
    errors.push(error)
    return reply.code(500).send('failed')
  })
  app.addHook('onRequest', async (_request, reply) => {
    reply.headers(site.responseHeaders ?? {})
    site.before?.(reply.raw)
  })
  for (const limit of site.app ?? []) app.addHook('onRequest', limit as onRequestAsyncHookHandler)
  app.register(
    async (group) => {
      for (const limit of site.group ?? []) group.addHook('onRequest', limit as onRequestAsyncHookHandler)
      group.get(
        '/item',
        { onRequest: (site.route ?? []) as onRequestAsyncHookHandler[] },
        async (request, reply) => {
          handled.push(request.rateLimit)
          reply.code(Number((await site.handler?.()) ?? 200))
          return reply.raw.headersSent ? reply.hijack() : 'ok'
        },
      )
    },
    { prefix: '/api' },
  )
  await app.listen({ port: 0, host: '127.0.0.1' })
  return { port: (app.server.address() as AddressInfo).port, handled, errors, close: () => app.close() }
}

adapterContract('Fastify 5', makeServer)
