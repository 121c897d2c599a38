// A coarse line in each location, which costs no call, before limits that are exact for all locations together.
import { env, waitUntil } from 'cloudflare:workers'
import { decisionOf, withRateLimit } from '@sluice/edge'
import { DurableObjectStore, withRateLimitBinding } from '@sluice/edge/cloudflare'
import * as policies from './policies.mjs'

export { RateLimitObject } from '@sluice/edge/cloudflare'

const store = new DurableObjectStore(env.RATE_LIMITS, { waitUntil })

// A store that fails must not open the door to guessing: 503 rather than an uncounted attempt.
const logIn = withRateLimit(() => Response.json({ error: 'wrong password' }, { status: 401 }), {
  store,
  ...policies.login,
  onStoreError: 'deny',
  timeoutMs: 5000,
})

function route(request) {
  const { pathname } = new URL(request.url)
  if (pathname === '/login') return logIn(request)
  if (pathname === '/') return Response.json({ remaining: decisionOf(request).remaining })
  return new Response('not found', { status: 404 })
}

// Busy clients are counted by leases, so that most of their requests ask no Durable Object.
const exact = withRateLimit(route, { store, ...policies.api, reserve: true, timeoutMs: 5000 })

export default {
  fetch: withRateLimitBinding(exact, { binding: env.API, policy: policies.api }),
}
