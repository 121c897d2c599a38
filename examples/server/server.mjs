// One route for each algorithm, a login route and tiered plans by API key. Counts in memory, or in Redis when
// REDIS_URL is set: then any number of these servers share every limit.
import { byApiKey, byIp, definePlans, planByApiKey, rateLimit } from '@sluice/express'
import { RedisStore } from '@sluice/redis'
import express from 'express'
import { Redis } from 'ioredis'

/** Reads PORT: a port number, 0 for any free one. */
function readPort(text) {
  const port = Number(text)
  if (!/^\d+$/.test(text) || port > 65_535) stop(`PORT is "${text}". Expected a number from 0 to 65535.`)
  return port
}

/** Opens the store that REDIS_URL names, or none, which leaves each limiter with a memory of its own. */
async function openStore(url) {
  if (!url) return undefined
  const shown = url.replace(/\/\/[^@/]*@/, '//***@')
  if (!/^rediss?:\/\//.test(url) || !URL.canParse(url))
    stop(`REDIS_URL is "${shown}". Expected redis://host:port.`)
  const client = new Redis(url, { lazyConnect: true, connectTimeout: 3000, retryStrategy: () => null })
  let cause
  client.on('error', (error) => {
    cause = error
  })
  await client.connect().catch((error) => {
    stop(`Redis cannot be used at REDIS_URL ${shown}: ${(cause ?? error).message || (cause ?? error).code}`)
  })
  const store = new RedisStore(client)
  client.disconnect() // the store has a connection of its own
  return store
}

function stop(problem) {
  console.error(problem)
  process.exit(1)
}

const port = readPort(process.env.PORT || '3000')
const store = await openStore(process.env.REDIS_URL)

// In production keep the default budget of 100 ms; a machine that also builds and tests may stall for longer.
const shared = { store, timeoutMs: 5000 }

const plans = definePlans({
  free: { limit: 5, window: '1m' },
  pro: [
    { name: 'burst', algorithm: 'token-bucket', limit: 10, window: '10s' },
    { name: 'daily', algorithm: 'fixed-window', limit: 1000, window: '1d' },
  ],
  enterprise: 'unlimited',
})
const apiKeys = { 'demo-pro': 'pro', 'demo-enterprise': 'enterprise' }

const algorithms = {
  'fixed-window': { limit: 5, window: '1m', align: 'first-request' },
  'sliding-window-counter': { limit: 5, window: '1m' },
  'sliding-window-log': { limit: 5, window: '1m' },
  'sliding-window-ring': { limit: 5, window: '1m' },
  'token-bucket': { limit: 6, window: '1m', burst: 5 },
  gcra: { limit: 6, window: '1m', burst: 5 },
}

const app = express()

for (const [algorithm, numbers] of Object.entries(algorithms)) {
  app.get(`/${algorithm}`, rateLimit({ ...shared, name: algorithm, algorithm, ...numbers }), (req, res) => {
    res.json({ algorithm, remaining: req.rateLimit.remaining })
  })
}

// A store that fails must not open the door to guessing: 503 rather than an uncounted attempt.
const login = rateLimit({
  ...shared,
  name: 'login',
  algorithm: 'fixed-window',
  align: 'first-request',
  limit: 3,
  window: '15m',
  key: byIp(),
  onStoreError: 'deny',
})
app.post('/login', login, (_req, res) => {
  res.status(401).json({ error: 'wrong password' })
})

// Keys that nobody verified must not mint quota, so the address is limited before them.
const tiers = [
  rateLimit({ ...shared, name: 'api-ip', limit: 300, window: '1m' }),
  rateLimit({
    ...shared,
    name: 'api',
    plans,
    plan: planByApiKey(apiKeys),
    defaultPlan: 'free',
    key: byApiKey('x-api-key'),
  }),
]
app.get('/api', tiers, (req, res) => {
  res.json({ plan: req.rateLimit.plan, remaining: req.rateLimit.remaining })
})

const server = app.listen(port, '127.0.0.1', (error) => {
  if (error?.code === 'EADDRINUSE') stop(`Port ${port} is in use. Choose another: PORT=3001 npm start`)
  if (error) stop(`Cannot listen on port ${port}: ${error.message}`)
  const url = `http://127.0.0.1:${server.address().port}`
  const repeat = (times, request) =>
    `  for i in $(seq ${times}); do curl -si ${request} | head -n 12; echo; done`
  console.log(`Sluice example listening on ${url}, counting in ${store ? 'Redis' : 'memory'}`)
  console.log('\nEach line ends in a 429 with its headers:')
  for (const algorithm of Object.keys(algorithms)) console.log(repeat(6, `${url}/${algorithm}`))
  console.log(repeat(4, `-X POST ${url}/login`))
  console.log(repeat(6, `${url}/api`))
  console.log(repeat(15, `-H 'x-api-key: demo-pro' ${url}/api`))
  console.log('\nThis one has no limit of its own plan:')
  console.log(repeat(2, `-H 'x-api-key: demo-enterprise' ${url}/api`))
})

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    server.close(() => store?.close())
    server.closeAllConnections()
  })
}
