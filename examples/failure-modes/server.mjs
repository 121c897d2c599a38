// Three routes on one Redis, and three answers to its failure. Needs REDIS_URL; PORT is 3000 by default.
import { rateLimit } from '@sluice/express'
import { RedisStore } from '@sluice/redis'
import express from 'express'
import { Redis } from 'ioredis'

const { REDIS_URL, PORT = '3000', TIMEOUT_MS = '100' } = process.env
if (!REDIS_URL) {
  console.error('Set REDIS_URL to a Redis server, such as redis://127.0.0.1:6379.')
  process.exit(1)
}

// The store has a connection of its own; this client only says where to.
const store = new RedisStore(new Redis(REDIS_URL, { lazyConnect: true }))
// Until Redis answers, the first requests would go uncounted; if it does not, the server starts all the same.
await store.ready({ timeoutMs: 2000 }).catch((error) => console.warn(error.message))

// In production keep the default budget of 100 ms; a machine that also builds and tests may stall for longer.
const shared = { store, timeoutMs: Number(TIMEOUT_MS) }

const app = express()

// Public pages: better served uncounted than not at all.
app.get('/', rateLimit({ ...shared, name: 'pages', limit: 1000, window: '1m' }), (_req, res) => {
  res.json({ page: 'welcome' })
})

// Logins: an attempt that nobody counts is a free guess.
const login = rateLimit({
  ...shared,
  name: 'login',
  limit: 5,
  window: '15m',
  key: (req) => `account:${req.query.account}`,
  onStoreError: 'deny',
})
app.post('/login', login, (_req, res) => {
  res.json({ welcome: true })
})

// Search costs something: each of 20 processes serves its part of the limit from its own memory.
const search = rateLimit({
  ...shared,
  name: 'search',
  algorithm: 'sliding-window-log',
  limit: 400,
  window: '1m',
  onStoreError: 'local',
  nodes: 20,
})
app.get('/search', search, (_req, res) => {
  res.json({ results: [] })
})

const server = app.listen(Number(PORT), '127.0.0.1', (error) => {
  if (error) throw error
  console.log(`listening on http://127.0.0.1:${server.address().port}`)
})
