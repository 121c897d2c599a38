// A limit for all requests, limits of single routes, a group that shares one, accounts counted after authentication,
// and guesses of unknown URLs. Counts in memory, or in Redis when REDIS_URL is set.
import { byUser, rateLimitPlugin } from '@sluice/fastify'
import { RedisStore } from '@sluice/redis'
import Fastify from 'fastify'
import { Redis } from 'ioredis'

const { PORT = '3000', REDIS_URL } = process.env
const store = REDIS_URL ? new RedisStore(new Redis(REDIS_URL, { lazyConnect: true })) : undefined
// Without its Redis the server starts all the same, and counts from the moment that it answers.
store?.ready().catch((error) => console.warn(error.message))

const app = Fastify()

await app.register(rateLimitPlugin, {
  store,
  timeoutMs: 5000, // in production keep the default of 100 ms; a machine that also builds and tests may stall for longer
  limit: 60,
  window: '1m',
  groups: {
    // A store that fails must not open the door to guessing: 503 rather than an uncounted attempt.
    credentials: { limit: 3, window: '15m', onStoreError: 'deny' },
  },
})

// Guesses are counted by the limit for all, and more strictly by their own.
const unknown = app.rateLimit({ name: 'unknown', limit: 10, window: '1m' })
app.setNotFoundHandler({ preHandler: unknown }, async (_request, reply) => {
  reply.code(404)
  return { error: 'not found' }
})

app.get('/health', { config: { rateLimit: false } }, async () => 'ok')

// Adds to the limit for all; counted as "GET /search/:topic", whatever the topic.
app.get(
  '/search/:topic',
  { config: { rateLimit: { limit: 5, window: '1m' } } },
  async ({ params, rateLimit }) => {
    return { topic: params.topic, remaining: rateLimit.remaining }
  },
)

const credentials = { config: { rateLimit: { group: 'credentials' } } }
app.post('/login', credentials, async (_request, reply) => reply.code(401).send({ error: 'wrong password' }))
app.post('/password-reset', credentials, async (_request, reply) => reply.code(202).send({}))

const users = new Map([
  ['token-ada', 'ada'],
  ['token-bob', 'bob'],
])

await app.register(async (accounts) => {
  // Bad tokens stop at the limit for all, which came before.
  accounts.addHook('onRequest', async (request, reply) => {
    request.user = users.get(request.headers.authorization?.replace(/^Bearer /, ''))
    if (!request.user) return reply.code(401).send({ error: 'unknown token' })
  })
  const perUser = { limit: 5, window: '1m', key: byUser((request) => request.user), hook: 'preHandler' }
  accounts.get('/me', { config: { rateLimit: perUser } }, async ({ user, rateLimit }) => {
    return { user, remaining: rateLimit.remaining }
  })
})

app.addHook('onClose', () => store?.close())
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => app.close())

const url = await app.listen({ port: Number(PORT), host: '127.0.0.1' })
console.log(`listening on ${url}, counting in ${store ? 'Redis' : 'memory'}`)
