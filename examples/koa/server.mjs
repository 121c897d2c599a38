// A limit for the whole application, a login that fails closed, and plans by API key. Counts in memory, or in Redis
// when REDIS_URL is set: then any number of these servers share every limit.
import Router from '@koa/router'
import { byApiKey, definePlans, planByApiKey, rateLimit } from '@sluice/koa'
import { RedisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import Koa from 'koa'

const { PORT = '3000', REDIS_URL } = process.env
const store = REDIS_URL ? new RedisStore(new Redis(REDIS_URL, { lazyConnect: true })) : undefined
// Without its Redis the server starts all the same, and counts from the moment that it answers.
store?.ready().catch((error) => console.warn(error.message))

// In production keep the default budget of 100 ms; a machine that also builds and tests may stall for longer.
const shared = { store, timeoutMs: 5000 }

const app = new Koa() // behind one proxy: new Koa({ proxy: true, maxIpsCount: 1 })
const router = new Router()

// Every request, whatever route takes it, or none.
app.use(rateLimit({ ...shared, name: 'app', limit: 60, window: '15m' }))

router.get('/', (ctx) => {
  ctx.body = { remaining: ctx.state.rateLimit.remaining }
})

// A store that fails must not open the door to guessing: 503 rather than an uncounted attempt.
const login = rateLimit({ ...shared, name: 'login', limit: 3, window: '15m', onStoreError: 'deny' })
router.post('/login', login, (ctx) => {
  ctx.status = 401
  ctx.body = { error: 'wrong password' }
})

const plans = definePlans({
  free: { limit: 5, window: '1m' },
  pro: [
    { name: 'burst', algorithm: 'token-bucket', limit: 10, window: '10s' },
    { name: 'daily', algorithm: 'fixed-window', limit: 1000, window: '1d' },
  ],
  enterprise: 'unlimited',
})
const apiKeys = { 'demo-pro': 'pro', 'demo-enterprise': 'enterprise' }

// A key that nobody knows has a count of its own, but the limit of the application holds for its address.
const tiers = rateLimit({
  ...shared,
  name: 'api',
  plans,
  plan: planByApiKey(apiKeys),
  defaultPlan: 'free',
  key: byApiKey('x-api-key'),
})
const api = new Router()
api.get('/report', (ctx) => {
  ctx.body = { report: 'all is well' }
})
router.use('/api', tiers, api.routes())

app.use(router.routes()).use(router.allowedMethods())

const server = app.listen(Number(PORT), '127.0.0.1', () => {
  console.log(
    `Koa listening on http://127.0.0.1:${server.address().port}, counting in ${store ? 'Redis' : 'memory'}`,
  )
})

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    server.close(() => store?.close())
    server.closeAllConnections()
  })
}
