// Compiled by the type check, never run: what the types admit, and what they refuse.
import { type Decision, type Limiter, rateLimit, rateLimitPlugin } from '@sluice/fastify'
import fastify, { type FastifyInstance } from 'fastify'

const hook = rateLimit({ limit: 5, window: '1m' })
export const limiter: Limiter = hook.limiter

export async function admits(app: FastifyInstance): Promise<void> {
  await app.register(rateLimitPlugin, { limit: 100, window: '1m', hook: 'preHandler' })
  await app.register(rateLimitPlugin, { global: false, groups: { login: { limit: 5, window: '1m' } } })
  app.addHook('onRequest', hook)
  app.addHook('preParsing', hook)
  app.addHook('preValidation', hook)
  app.addHook('preHandler', app.rateLimit({ limit: 5, window: '1m', key: (request) => request.ip }))
  app.setNotFoundHandler({ preHandler: hook }, (_request, reply) => reply.code(404).send())
  app.get<{ Querystring: { q: string } }>(
    '/search',
    { preHandler: [hook] },
    async (request) => request.query.q,
  )
  app.get('/a', { config: { rateLimit: { limit: 5, window: '1m', replace: true } } }, async (request) => {
    const decision: Decision | undefined = request.rateLimit
    return decision?.remaining
  })
  app.get('/b', { config: { rateLimit: { group: 'login', hook: 'preValidation' } } }, async () => 'ok')
  app.get('/c', { config: { rateLimit: false } }, async () => 'ok')
  app.addHook('preHandler', async (request, reply) => hook(request, reply))
  const http2 = fastify({ http2: true })
  http2.addHook('onRequest', hook)
  await http2.register(rateLimitPlugin, { limit: 100, window: '1m' })
}

export async function refuses(app: FastifyInstance): Promise<void> {
  // @ts-expect-error the stage is none of Fastify's at which a request can be limited
  await app.register(rateLimitPlugin, { limit: 100, window: '1m', hook: 'onSend' })
  // @ts-expect-error `limt` is misspelt
  await app.register(rateLimitPlugin, { limt: 100, window: '1m' })
  // @ts-expect-error a limit is no text
  app.get('/d', { config: { rateLimit: { limit: '5', window: '1m' } } }, async () => 'ok')
  // @ts-expect-error a group has its options in the plugin's
  app.get('/e', { config: { rateLimit: { group: 'login', limit: 5 } } }, async () => 'ok')
  // @ts-expect-error it makes a hook and is none
  app.get('/f', { preHandler: rateLimit }, async () => 'ok')
  // @ts-expect-error the decision is not writable text
  app.addHook('onRequest', async (request) => request.rateLimit?.remaining.trim())
  // @ts-expect-error the options are required
  app.rateLimit()
}
