// A limit for the whole application, a login that fails closed, and plans by API key. Counts in memory, or in Redis
// when REDIS_URL is set: then any number of these servers share every limit.
import { byApiKey, definePlans, planByApiKey, rateLimit } from '@sluice/express'
import { RedisStore } from '@sluice/redis'
import express from 'express'
import { Redis } from 'ioredis'

const { PORT = '3000', REDIS_URL } = process.env
const store = REDIS_URL ? new RedisStore(new Redis(REDIS_URL, { lazyConnect: true })) : undefined
// Without its Redis the server starts all the same, and counts from the moment that it answers.
store?.ready().catch((error) => console.warn(error.message))

// In production keep the default budget of 100 ms; a machine that also builds and tests may stall for longer.
const shared = { store, timeoutMs: 5000 }

const app = express()
// app.set('trust proxy', 1) // behind one proxy

// Every request, whatever route takes it, or none.
app.use(rateLimit({ ...shared, name: 'app', limit: 60, window: '15m' }))

app.get('/', (req, res) => {
  res.json({ remaining: req.rateLimit.remaining })
})

// A store that fails must not open the door to guessing: 503 rather than an uncounted attempt.
const login = rateLimit({ ...shared, name: 'login', limit: 3, window: '15m', onStoreError: 'deny' })
app.post('/login', login, (_req, res) => {
  res.status(401).json({ error: 'wrong password' })
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
const api = express.Router()
api.use(tiers)
api.get('/report', (_req, res) => {
  res.json({ report: 'all is well' })
})
app.use('/api', api)

const server = app.listen(Number(PORT), '127.0.0.1', (error) => {
  if (error) throw error
  console.log(
    `Express listening on http://127.0.0.1:${server.address().port}, counting in ${store ? 'Redis' : 'memory'}`,
  )
})

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    server.close(() => store?.close())
    server.closeAllConnections()
  })
}
