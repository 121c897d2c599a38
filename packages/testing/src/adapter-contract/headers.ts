import { byApiKey } from '@sluice/core'
import { limiterHeaders, send } from './http-client.js'
import { type Sites, window } from './sites.js'

export function headersTests(sites: Sites): void {
  describe('headers', () => {
    test('an allowed request carries draft-8 and draft-6 headers and reaches the handler', async () => {
      const server = await sites.serveLimited({ limit: 2 })
      const answer = await send(server)
      expect(answer).toMatchObject({ status: 200, body: 'ok' })
      expect(limiterHeaders(answer)).toEqual({
        'ratelimit-policy': '"2-per-1m";q=2;w=60',
        ratelimit: '"2-per-1m";r=1;t=60',
        'ratelimit-limit': '2',
        'ratelimit-remaining': '1',
        'ratelimit-reset': '60',
      })
      expect(server.handled).toMatchObject([
        { allowed: true, reason: 'ok', remaining: 1, key: 'ip:127.0.0.1' },
      ])
    })

    test('each policy of a limiter is a member, and the older headers describe the tightest', async () => {
      const policies = [
        { ...window, name: 'burst', limit: 2, window: '1s' },
        { ...window, name: 'daily', limit: 10, window: '1d' },
      ]
      const server = await sites.serve(({ rateLimit }) => ({ app: [rateLimit({ policies })] }))
      await send(server)
      await send(server)
      expect(limiterHeaders(await send(server))).toEqual({
        'ratelimit-policy': '"burst";q=2;w=1, "daily";q=10;w=86400',
        ratelimit: '"burst";r=0;t=1, "daily";r=8;t=86400',
        'ratelimit-limit': '2',
        'ratelimit-remaining': '0',
        'ratelimit-reset': '1',
        'retry-after': '1',
        'cache-control': 'no-store',
      })
    })

    test.each([
      ['draft-8', { 'ratelimit-policy': '"2-per-1m";q=2;w=60', ratelimit: '"2-per-1m";r=1;t=60' }],
      [
        ['draft-6'],
        {
          'ratelimit-policy': '2;w=60',
          'ratelimit-limit': '2',
          'ratelimit-remaining': '1',
          'ratelimit-reset': '60',
        },
      ],
      ['draft-7', { 'ratelimit-policy': '2;w=60', ratelimit: 'limit=2, remaining=1, reset=60' }],
      [
        'legacy',
        { 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '1', 'x-ratelimit-reset': '1728000060' },
      ],
      [
        ['legacy', 'draft-6', 'draft-7', 'draft-8'],
        {
          'ratelimit-policy': '"2-per-1m";q=2;w=60',
          ratelimit: '"2-per-1m";r=1;t=60',
          'ratelimit-limit': '2',
          'ratelimit-remaining': '1',
          'ratelimit-reset': '60',
          'x-ratelimit-limit': '2',
          'x-ratelimit-remaining': '1',
          'x-ratelimit-reset': '1728000060',
        },
      ],
      [false, {}],
    ])('headers: %j sends what it names', async (headers, expected) => {
      const server = await sites.serveLimited({ limit: 2, headers })
      expect(limiterHeaders(await send(server))).toEqual(expected)
    })

    test('legacyReset: delta counts from now, as the other sets do B142', async () => {
      const server = await sites.serveLimited({ limit: 2, headers: 'legacy', legacyReset: 'delta' })
      expect(limiterHeaders(await send(server))).toMatchObject({ 'x-ratelimit-reset': '60' })
    })

    test('with headers: false a response tells nothing of its client, so that shared caches may keep it B144', async () => {
      const server = await sites.serveLimited(
        { limit: 9, headers: false, key: byApiKey('x-api-key') },
        { responseHeaders: { 'Cache-Control': 'public, max-age=60', ETag: '"v1"' } },
      )
      const headersFor = async (client: string): Promise<unknown> => {
        const { date, ...headers } = (await send(server, { headers: { 'x-api-key': client } })).headers
        return headers
      }
      const first = await headersFor('alice')
      expect(first).toMatchObject({ 'cache-control': 'public, max-age=60', etag: '"v1"' })
      expect(await headersFor('alice')).toEqual(first)
      expect(await headersFor('bob')).toEqual(first)
    })

    test('headers: false still tells a denied client when to come back', async () => {
      const server = await sites.serveLimited({ limit: 1, headers: false })
      await send(server)
      expect(limiterHeaders(await send(server))).toEqual({
        'retry-after': '60',
        'cache-control': 'no-store',
      })
    })

    test('list members of others are kept', async () => {
      const responseHeaders = { 'RateLimit-Policy': '"edge";q=9;w=1', RateLimit: '"edge";r=8;t=1' }
      const server = await sites.serve(({ rateLimit }) => ({
        responseHeaders,
        app: [rateLimit({ name: 'app', limit: 5, ...window })],
        route: [rateLimit({ name: 'route', limit: 3, ...window })],
      }))
      expect(limiterHeaders(await send(server))).toMatchObject({
        'ratelimit-policy': '"edge";q=9;w=1, "app";q=5;w=60, "route";q=3;w=60',
        ratelimit: '"edge";r=8;t=1, "app";r=4;t=60, "route";r=2;t=60',
      })
    })

    test('where CORS is in use the headers are exposed, beside what was exposed before', async () => {
      const server = await sites.serveLimited(
        { limit: 1 },
        {
          responseHeaders: {
            'Access-Control-Allow-Origin': '*',
            'Access-Control-Expose-Headers': 'X-Total',
          },
        },
      )
      const exposed =
        'X-Total, RateLimit-Policy, RateLimit, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset'
      expect((await send(server)).headers['access-control-expose-headers']).toBe(exposed)
      expect((await send(server)).headers['access-control-expose-headers']).toBe(`${exposed}, Retry-After`)
    })

    test('a client can put nothing into them', async () => {
      const server = await sites.serveLimited({ limit: 2, key: byApiKey('x-api-key') })
      const plain = await send(server, { headers: { 'x-api-key': 'plain' } })
      const crafted = await send(server, {
        headers: { 'x-api-key': 'a", "evil";r=9', accept: '"evil", */*', 'x-forwarded-for': '"evil";r=9' },
      })
      expect(limiterHeaders(crafted)).toEqual(limiterHeaders(plain))
    })

    test('limit 0 refuses everything, with no time at which to come back', async () => {
      const server = await sites.serveLimited({ limit: 0 })
      const answer = await send(server)
      expect(answer.status).toBe(429)
      expect(limiterHeaders(answer)).toEqual({
        'ratelimit-policy': '"0-per-1m";q=0;w=60',
        ratelimit: '"0-per-1m";r=0',
        'ratelimit-limit': '0',
        'ratelimit-remaining': '0',
        'ratelimit-reset': '0',
        'cache-control': 'no-store',
      })
    })

    test('a shadow policy never refuses and is left out of headers, but is in the decision', async () => {
      const policies = [
        { ...window, name: 'trial', limit: 0, shadow: true },
        { ...window, name: 'real', limit: 2 },
      ]
      const server = await sites.serve(({ rateLimit }) => ({ app: [rateLimit({ policies })] }))
      const answer = await send(server)
      expect(answer.status).toBe(200)
      expect(limiterHeaders(answer)).toMatchObject({
        ratelimit: '"real";r=1;t=60',
        'ratelimit-policy': '"real";q=2;w=60',
      })
      expect(server.handled[0]?.policies).toMatchObject([
        { name: 'trial', allowed: false, shadow: true },
        { name: 'real', allowed: true, shadow: false },
      ])
    })
  })
}
