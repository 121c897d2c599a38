import { limiterHeaders, send } from './http-client.js'
import type { Sites } from './sites.js'

export function skipTests(sites: Sites): void {
  describe('skip and preflights', () => {
    test.each([
      [true, 'skipped'],
      [Promise.resolve(true), 'skipped'],
      ['yes', 'ok'],
      [1, 'ok'],
      [undefined, 'ok'],
    ])('skip that returns %p: %s', async (value, reason) => {
      const server = await sites.serveLimited({ limit: 5, skip: () => value })
      const answer = await send(server)
      expect(server.handled).toMatchObject([{ reason }])
      expect('ratelimit' in answer.headers).toBe(reason === 'ok')
    })

    const preflight = {
      method: 'OPTIONS',
      headers: { origin: 'https://a.example', 'access-control-request-method': 'GET' },
    }

    test('preflights pass uncounted, and a refusal keeps its CORS headers B39', async () => {
      const server = await sites.serveLimited(
        { limit: 10 },
        { responseHeaders: { 'Access-Control-Allow-Origin': '*' } },
      )
      for (let i = 0; i < 10; i++) {
        expect(limiterHeaders(await send(server, preflight))).toEqual({})
        expect((await send(server)).status).toBe(200)
      }
      const refused = await send(server)
      expect(refused.status).toBe(429)
      expect(refused.headers).toMatchObject({
        'access-control-allow-origin': '*',
        'access-control-expose-headers': expect.stringContaining('Retry-After'),
      })
    })

    test("preflight: 'count' counts them", async () => {
      const server = await sites.serveLimited({ limit: 1, preflight: 'count' })
      await send(server, preflight)
      expect((await send(server)).status).toBe(429)
    })

    test('an OPTIONS request that is no preflight counts', async () => {
      const server = await sites.serveLimited({ limit: 1 })
      await send(server, { method: 'OPTIONS' })
      expect((await send(server)).status).toBe(429)
    })
  })
}
