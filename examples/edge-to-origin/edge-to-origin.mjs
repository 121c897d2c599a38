// A flood of ten times the limit, over four locations of the edge, for three minutes: what ends at the edge, what arrives
// at the origin, and what it serves. All on this machine: the origin is a server of Express, and the locations are Fetch
// handlers that ask it over HTTP. Time passes as fast as requests are sent.
import { once } from 'node:events'
import { byApiKey, MemoryStore } from '@sluice/core'
import { withRateLimit } from '@sluice/edge'
import { FeedLimiter, FeedPublisher, FeedSubscriber } from '@sluice/edge/feed'
import { rateLimit } from '@sluice/express'
import express from 'express'

// One policy and one kind of key for both ends. The origin counts exactly; each location lets no more than the limit
// through by itself, and learns from the origin's feed who is over it.
const policy = { name: 'api', algorithm: 'fixed-window', limit: 100, window: '1m' }
const key = byApiKey('x-api-key')
const locations = ['Frankfurt', 'Tokyo', 'Ohio', 'Sydney']
const windows = 3
const floods = 10

let nowUs = 30_000_000 * 60_000_000
const nowMs = () => nowUs / 1000
const store = () => new MemoryStore({ nowUs: () => nowUs })
const secret = 'in production: 32 random bytes or more'
// In production keep the default budgets; a machine that also builds and tests may stall for longer.
const timeoutMs = 10_000

// The origin.
const publisher = new FeedPublisher({ key: { id: '1', secret }, maxAgeMs: 500, nowMs })
const app = express()
app.use('/block-feed', publisher.handler)
app.use((request, _response, next) => {
  arrived(request.get('x-api-key')).requests += 1
  next()
})
app.use(rateLimit({ ...policy, key, store: store(), timeoutMs, onEvent: publisher.onEvent }))
app.use((request, response) => {
  arrived(request.get('x-api-key')).served += 1
  response.send('served by the origin\n')
})
const server = app.listen(0, '127.0.0.1')
await once(server, 'listening')
const origin = `http://127.0.0.1:${server.address().port}`

/** What has arrived of a client at the origin in the present window. */
const counts = new Map()
function arrived(client) {
  const name = `${client} ${Math.floor(nowMs() / 60_000)}`
  if (!counts.has(name)) counts.set(name, { requests: 0, served: 0 })
  return counts.get(name)
}

// The edge.
const edges = locations.map(() => {
  const feed = new FeedSubscriber({
    url: `${origin}/block-feed`,
    keys: { 1: secret },
    intervalMs: 500,
    jitter: 0,
    timeoutMs,
    nowMs,
  })
  const limiter = new FeedLimiter({ ...policy, feed, store: store(), timeoutMs })
  const pass = (request) => fetch(origin, { headers: { 'x-api-key': request.headers.get('x-api-key') } })
  return { feed, handler: withRateLimit(pass, { limiter, key }) }
})

async function visit(edge, client) {
  // A request that finds the feed due asks for it and is not held up; here it waits, so that each run is the same.
  await edge.feed.poll()
  const response = await edge.handler(
    new Request('https://site.example/', { headers: { 'x-api-key': client } }),
  )
  await response.arrayBuffer()
  return response.status
}

const sent = floods * policy.limit
let turn = 0
for (let minute = 1; minute <= windows; minute++) {
  const answers = { 200: 0, 429: 0 }
  const other = { 200: 0, 429: 0 }
  for (let i = 0; i < sent; i++) {
    turn += 1
    answers[await visit(edges[turn % edges.length], 'attacker')] += 1
    // A customer who keeps to the limit asks now and then.
    if (i % 100 === 0) other[await visit(edges[turn % edges.length], 'customer')] += 1
    nowUs += 60_000_000 / sent
  }
  nowUs -= 1
  const { requests, served } = arrived('attacker')
  nowUs += 1
  const shed = (100 * (sent - requests)) / (sent - policy.limit)
  console.log(
    `minute ${minute}: ${sent} sent, ${requests} arrived at the origin, ${served} served; ${shed.toFixed(1)} % of the excess ended at the edge; a customer: ${other[200]} of ${other[200] + other[429]} served`,
  )
}
server.close()
