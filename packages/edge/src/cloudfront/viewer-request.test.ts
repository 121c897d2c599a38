import type { Decision, SluiceEvent } from '@sluice/core'
import { byApiKey, httpReply, Limiter, MemoryStore } from '@sluice/core'
import { eventOf } from '../../test/cloudfront-events.js'
import { World } from '../../test/feed-world.js'
import {
  type CloudFrontRequest,
  type CloudFrontResponse,
  type ViewerRequestOptions,
  viewerRequest,
} from './index.js'

const logger = { warn() {} }
const day: ViewerRequestOptions = {
  name: 'api',
  algorithm: 'fixed-window',
  limit: 20,
  window: '400d',
  locations: 10,
  // The first request waits for the feed, on a machine that may be busy.
  timeoutMs: 30_000,
  logger,
}

type Changes = Parameters<typeof eventOf>[0]

/** Sends events one after another, and tells which were passed on and which were answered with a status. */
async function send(
  handler: ReturnType<typeof viewerRequest>,
  count: number,
  changes: Changes = {},
): Promise<(string | undefined)[]> {
  const outcomes: (string | undefined)[] = []
  for (let i = 0; i < count; i++) {
    const answer = await handler(eventOf(changes))
    outcomes.push('status' in answer ? answer.status : 'passed')
  }
  return outcomes
}

describe('a viewer request', () => {
  test('that is admitted is passed on as it came, the very object', async () => {
    const event = eventOf()
    const before = structuredClone(event)
    expect(await viewerRequest(day)(event)).toBe(event.Records[0]?.cf.request)
    expect(event).toEqual(before)
  })

  test('beyond its share is refused in the form of CloudFront, with the reply of any adapter', async () => {
    const decisions: Decision[] = []
    const onEvent = (event: SluiceEvent): unknown =>
      event.type === 'decision' && decisions.push(event.decision)
    const handler = viewerRequest({ ...day, onEvent: onEvent as (event: SluiceEvent) => void })
    expect(await send(handler, 2)).toEqual(['passed', 'passed'])
    const response = (await handler(eventOf())) as CloudFrontResponse
    const { headers, body } = httpReply(decisions.at(-1) as Decision)
    const { 'Content-Length': _, ...sent } = headers
    expect(response).toEqual({
      status: '429',
      statusDescription: 'Too Many Requests',
      headers: Object.fromEntries(
        Object.entries(sent).map(([key, value]) => [key.toLowerCase(), [{ key, value }]]),
      ),
      body,
      bodyEncoding: 'text',
    })
  })

  test('is counted by the address that CloudFront saw, whatever its headers say B11', async () => {
    const handler = viewerRequest(day)
    const forged = (i: number): Changes => ({
      headers: { 'x-forwarded-for': [{ key: 'X-Forwarded-For', value: `198.51.100.${i}` }] },
    })
    expect(await send(handler, 1, forged(1))).toEqual(['passed'])
    expect(await send(handler, 2, forged(2))).toEqual(['passed', '429'])
    expect(await send(handler, 1, { clientIp: '198.51.100.1' })).toEqual(['passed'])
  })

  test('from another address of one IPv6 subnet is of one client B06', async () => {
    const handler = viewerRequest(day)
    const passed = await Promise.all(
      [1, 2, 3].map((i) => send(handler, 1, { clientIp: `2001:db8:1:2::${i}` })),
    )
    expect(passed.flat().sort()).toEqual(['429', 'passed', 'passed'])
  })

  test('is told by the headers that CloudFront gives as a list', async () => {
    const handler = viewerRequest({ ...day, key: byApiKey('x-api-key') })
    const withKey = (value: string): Changes => ({ headers: { 'x-api-key': [{ key: 'X-API-Key', value }] } })
    expect(await send(handler, 3, withKey('a'))).toEqual(['passed', 'passed', '429'])
    expect(await send(handler, 1, withKey('b'))).toEqual(['passed'])
  })

  test('that accepts no JSON is told in plain text, and HEAD without a body', async () => {
    const handler = viewerRequest({ ...day, limit: 0 })
    const accept = { accept: [{ key: 'accept', value: 'text/html' }] }
    expect(await handler(eventOf({ headers: accept }))).toMatchObject({
      headers: { 'content-type': [{ key: 'Content-Type', value: 'text/plain; charset=utf-8' }] },
    })
    const head = await handler(eventOf({ method: 'HEAD' }))
    expect(head).toMatchObject({ status: '429' })
    expect(head).not.toHaveProperty('body')
  })

  test('of a CORS preflight is passed on uncounted', async () => {
    const headers = {
      'access-control-request-method': [{ key: 'Access-Control-Request-Method', value: 'PUT' }],
    }
    expect(await send(viewerRequest({ ...day, limit: 0 }), 1, { method: 'OPTIONS', headers })).toEqual([
      'passed',
    ])
  })

  test('carries no header that CloudFront does not let a function set', async () => {
    const sets = ['draft-8', 'draft-7', 'draft-6', 'legacy'] as const
    const handler = viewerRequest({ ...day, limit: 0, headers: sets })
    const { headers = {} } = (await handler(eventOf())) as CloudFrontResponse
    expect(Object.keys(headers)).toEqual(
      expect.arrayContaining(['ratelimit', 'ratelimit-policy', 'x-ratelimit-limit', 'cache-control']),
    )
    const forbidden =
      /^(connection|content-length|expect|host|keep-alive|proxy-.*|trailer|transfer-encoding|upgrade|via|x-accel-.*|x-amz-cf-.*|x-amzn-.*|x-cache|x-edge-.*|x-forwarded-proto|x-real-ip)$/
    expect(Object.keys(headers).filter((name) => forbidden.test(name))).toEqual([])
    for (const [name, values] of Object.entries(headers)) {
      expect(values).toEqual([
        { key: expect.stringMatching(new RegExp(`^${name}$`, 'i')), value: expect.any(String) },
      ])
    }
  })

  test('that a function of the user fails for rejects with a coded error, and charges nothing', async () => {
    const handler = viewerRequest({
      ...day,
      key: () => {
        throw new Error('no key')
      },
    })
    await expect(handler(eventOf())).rejects.toMatchObject({ code: 'SLUICE_REQUEST_FUNCTION' })
  })
})

describe('the share of a location', () => {
  test.each([
    [10, 1, 10],
    [10, 3, 3],
    [10, 10, 1],
    [10, 10_000, 1],
    [0, 10, 0],
  ])('of %d among %d is %d', async (limit, locations, share) => {
    const handler = viewerRequest({ ...day, limit, locations })
    const outcomes = await send(handler, 12)
    expect(outcomes.filter((outcome) => outcome === 'passed')).toHaveLength(share)
  })

  test('is of each policy of a plan, and of its burst', async () => {
    const plans = { pro: [{ name: 'b', algorithm: 'gcra', limit: 100, burst: 40, window: '400d' }] } as const
    const handler = viewerRequest({ plans, plan: 'pro', locations: 10, logger })
    expect((await send(handler, 6)).filter((outcome) => outcome === 'passed')).toHaveLength(4)
  })

  test('is given back and forgotten like any count', async () => {
    const handler = viewerRequest(day)
    await send(handler, 3)
    await handler.limiter.reset('ip:203.0.113.178')
    expect(await send(handler, 3)).toEqual(['passed', 'passed', '429'])
    await handler.limiter.reset('ip:203.0.113.178')
    const decision = await handler.limiter.consume({ key: 'ip:203.0.113.178', cost: 2 })
    await handler.limiter.refund(decision)
    expect(await handler.limiter.peek({ key: 'ip:203.0.113.178' })).toMatchObject({
      allowed: true,
      remaining: 1,
    })
    await handler.limiter.close()
  })
})

describe('the block feed', () => {
  test('is obeyed at the door: a key that the origin refuses costs no share, and the reply counts its wait down', async () => {
    const world = new World({ name: 'api' })
    await world.exhaust('ip:203.0.113.178')
    const handler = viewerRequest({ ...day, feed: world.feed })
    const response = (await handler(eventOf())) as CloudFrontResponse
    expect(response).toMatchObject({ status: '429', headers: { 'retry-after': [{ value: '60' }] } })
    expect(response.headers?.ratelimit).toEqual([{ key: 'RateLimit', value: '"api";r=0;t=60' }])
    expect(await send(handler, 3, { clientIp: '198.51.100.1' })).toEqual(['passed', 'passed', '429'])
    world.pass(60_000)
    expect(await send(handler, 3)).toEqual(['passed', 'passed', '429'])
  })

  test('that cannot be had stops nobody', async () => {
    const world = new World({ name: 'api' })
    world.between = () => Promise.reject(new Error('dead'))
    expect(await send(viewerRequest({ ...day, feed: world.feed }), 1)).toEqual(['passed'])
  })

  test('does not refuse a CORS preflight', async () => {
    const world = new World({ name: 'api' })
    await world.exhaust('ip:203.0.113.178')
    const headers = { 'access-control-request-method': [{ value: 'PUT' }] }
    const handler = viewerRequest({ ...day, feed: world.feed })
    expect(await send(handler, 1, { method: 'OPTIONS', headers })).toEqual(['passed'])
    expect(await send(handler, 1)).toEqual(['429'])
  })
})

describe('a reply of the user', () => {
  test('is sent with the headers of the limiter, its own first', async () => {
    const seen: unknown[] = []
    const handler = viewerRequest({
      ...day,
      limit: 0,
      onLimited: (request: CloudFrontRequest, decision) => {
        seen.push(request.clientIp, decision.allowed)
        return {
          status: '302',
          headers: { location: [{ value: '/slow-down' }], ratelimit: [{ value: 'mine' }] },
        }
      },
    })
    expect(await handler(eventOf())).toMatchObject({
      status: '302',
      headers: {
        location: [{ value: '/slow-down' }],
        ratelimit: [{ value: 'mine' }],
        'cache-control': [{ value: 'no-store' }],
      },
    })
    expect(seen).toEqual(['203.0.113.178', false])
  })

  test('that is none leaves it to Sluice', async () => {
    const handler = viewerRequest({ ...day, limit: 0, onLimited: () => undefined })
    expect(await send(handler, 1)).toEqual(['429'])
  })
})

test('a limiter of another store decides by that, and 503 is told when it fails', async () => {
  const store = Object.assign(new MemoryStore(), { consume: () => Promise.reject(new Error('gone')) })
  const limiter = new Limiter({ limit: 1, window: '1m', store, onStoreError: 'deny', logger })
  const response = await viewerRequest({ limiter })(eventOf())
  expect(response).toMatchObject({
    status: '503',
    statusDescription: 'Service Unavailable',
    headers: { 'retry-after': [{ value: '1' }] },
  })
})

describe('options that cannot be used are refused', () => {
  test.each<[string, unknown, RegExp]>([
    ['none at all', undefined, /`locations` is undefined/],
    [
      'no number of locations',
      { limit: 1, window: '1m' },
      /`locations` is undefined\. Expected a whole number from 1 to 10,000/,
    ],
    ['no location', { ...day, locations: 0 }, /`locations` is 0/],
    ['no policy', { locations: 2 }, /`limit` is undefined/],
    ['a store', { ...day, store: new MemoryStore() }, /`store`.*Give a `limiter`/],
    [
      'a queue',
      { ...day, algorithm: 'leaky-bucket', limit: 1, window: '1s' },
      /`algorithm` is "leaky-bucket"/,
    ],
    [
      'a message that CloudFront would not take',
      { ...day, message: 'é'.repeat(16_385) },
      /`message` is "32770 bytes"/,
    ],
    ['such an object', { ...day, message: { text: 'x'.repeat(32_768) } }, /`message` is "32779 bytes"/],
    ['a reply that is no function', { ...day, onLimited: 'x' }, /`onLimited`/],
    ['what a viewer request cannot know', { ...day, refundWhen: () => true }, /Unknown option `refundWhen`/],
    ['a misspelt option', { ...day, locatoins: 2 }, /Unknown option `locatoins`/],
    ['a feed that is none', { ...day, feed: {} }, /`feed`/],
    [
      'locations beside a limiter',
      { limiter: new Limiter({ limit: 1, window: '1m' }), locations: 2 },
      /`locations` is 2\. Expected nothing beside `limiter`/,
    ],
  ])('%s', (_, options, message) => {
    expect(() => viewerRequest(options as ViewerRequestOptions)).toThrow(message)
  })

  test('and leave the longest message that is taken', () => {
    expect(() => viewerRequest({ ...day, message: 'é'.repeat(16_384) })).not.toThrow()
  })
})
