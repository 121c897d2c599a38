// A flood against a site behind CloudFront, all on this machine: the origin is a server, and containers of Lambda@Edge
// are handlers that get the events which CloudFront would hand to them.
import { once } from 'node:events'
import { createServer } from 'node:http'
import { httpReply, Limiter } from '@sluice/core'
import { cloudFrontFunction, keyValueChanges, viewerRequest, wafRules } from '@sluice/edge/cloudfront'
import { FeedPublisher, FeedSubscriber, readFeed } from '@sluice/edge/feed'

// One policy for both ends: the origin serves it exactly, each location a part.
const policy = { name: 'api', algorithm: 'fixed-window', align: 'first-request', limit: 100, window: '10m' }
const locations = 4
const containersEach = 3
const secrets = { '2026-11': 'in production: 32 random bytes or more' }

// In production keep the default budget of 100 ms; a machine that also builds and tests may stall for longer.
const timeoutMs = 5000

// The origin.
const publisher = new FeedPublisher({ key: { id: '2026-11', secret: secrets['2026-11'] }, maxAgeMs: 0 })
const limiter = new Limiter({ ...policy, timeoutMs, onEvent: publisher.onEvent })
const arrived = { served: 0, denied: 0 }
const server = createServer(async (request, response) => {
  if (request.url === '/block-feed') return publisher.handler(request, response)
  const decision = await limiter.consume({ key: `ip:${request.headers['x-viewer']}` })
  arrived[decision.allowed ? 'served' : 'denied'] += 1
  const { status = 200, headers, body } = httpReply(decision)
  response.writeHead(status, headers).end(body)
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const origin = `http://127.0.0.1:${server.address().port}`

/** Starts a container: its own memory, its own copy of the feed. */
function startContainer(intervalMs = 60_000) {
  const feed = new FeedSubscriber({ url: `${origin}/block-feed`, keys: secrets, intervalMs, timeoutMs })
  return viewerRequest({ ...policy, locations, feed, timeoutMs })
}

/** What CloudFront does with a request: asks the function, then the origin. */
async function visit(container, clientIp) {
  const headers = { host: [{ key: 'Host', value: 'd111111abcdef8.cloudfront.net' }] }
  const request = { clientIp, headers, method: 'GET', uri: '/', querystring: '' }
  const answer = await container({ Records: [{ cf: { config: { eventType: 'viewer-request' }, request } }] })
  if (answer !== request) return Number(answer.status)
  return (await fetch(origin, { headers: { 'x-viewer': clientIp } })).status
}

/** Sends requests round the containers, and tells what became of them. */
async function flood(containers, clientIp, count) {
  const before = { ...arrived }
  let served = 0
  for (let i = 0; i < count; i++) {
    if ((await visit(containers[i % containers.length], clientIp)) === 200) served += 1
  }
  const reached = arrived.served + arrived.denied - before.served - before.denied
  return `${count} sent, ${reached} reached the origin, ${served} served`
}

const attacker = '203.0.113.66'
const warm = Array.from({ length: locations * containersEach }, () => startContainer())
console.log(
  `flood on ${warm.length} containers of ${locations} locations: ${await flood(warm, attacker, 2000)}`,
)

const cold = Array.from({ length: locations }, () => startContainer(100))
console.log(`flood on cold containers, which know the feed: ${await flood(cold, attacker, 1000)}`)
console.log(`another client meanwhile: ${await flood(cold, '198.51.100.7', 8)}`)

await limiter.reset(`ip:${attacker}`)
publisher.remove(`ip:${attacker}`, policy.name)
while ((await visit(cold[0], attacker)) !== 200) await new Promise((resolve) => setTimeout(resolve, 20))
console.log('after the reset the client is served again')

// The same policy for AWS WAF and for CloudFront Functions; what they cannot do is written to the console.
const { rules } = wafRules(policy)
const { Limit, EvaluationWindowSec } = rules[0].Statement.RateBasedStatement
console.log(`WAF rule ${rules[0].Name}: ${Limit} per ${EvaluationWindowSec} s`)

const { code } = cloudFrontFunction(policy)
for (let i = 0; i < 101; i++) await limiter.consume({ key: `ip:${attacker}` })
const changes = keyValueChanges(await readFeed(await publisher.feed(), secrets))
console.log(`CloudFront function: ${code.length} characters, and for its store ${JSON.stringify(changes)}`)

server.close()
server.closeAllConnections()
