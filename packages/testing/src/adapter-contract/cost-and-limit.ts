import type { RequestContext } from '@sluice/core'
import { limiterHeaders, send } from './http-client.js'
import type { Sites } from './sites.js'

export function costAndLimitTests(sites: Sites): void {
  describe('cost and limit', () => {
    test.each([
      ['0 charges nothing', 0, 5],
      ['n charges n', 3, 2],
      [
        'a function of the request',
        async (_: unknown, { header }: RequestContext) => Number(header('x-cost')),
        1,
      ],
    ])('cost: %s', async (_, cost, remaining) => {
      const server = await sites.serveLimited({ limit: 5, cost })
      const { headers } = await send(server, { headers: { 'x-cost': '4' } })
      expect(headers['ratelimit-remaining']).toBe(String(remaining))
    })

    test('a cost above the limit is denied with no time at which to come back', async () => {
      const server = await sites.serveLimited({ limit: 2, cost: 3 })
      const answer = await send(server)
      expect(answer.status).toBe(429)
      expect(limiterHeaders(answer)).toEqual({
        'ratelimit-policy': '"2-per-1m";q=2;w=60',
        ratelimit: '"2-per-1m";r=2',
        'ratelimit-limit': '2',
        'ratelimit-remaining': '2',
        'ratelimit-reset': '0',
        'cache-control': 'no-store',
      })
    })

    test('a limit may depend on the request', async () => {
      const limit = (_: unknown, { header }: RequestContext): number => (header('x-vip') ? 3 : 1)
      const server = await sites.serveLimited({ name: 'api', limit })
      expect(limiterHeaders(await send(server))).toMatchObject({ ratelimit: '"api";r=0;t=60' })
      expect((await send(server)).status).toBe(429)
      expect(limiterHeaders(await send(server, { headers: { 'x-vip': '1' } }))).toMatchObject({
        'ratelimit-policy': '"api";q=3;w=60',
        ratelimit: '"api";r=1;t=60',
      })
    })
  })
}
