import type http from 'node:http'
import { byApiKey } from '@sluice/core'
import { limiterHeaders, send } from './http-client.js'
import { headerSets, type Sites, startUs } from './sites.js'

export function waitsTests(sites: Sites): void {
  describe('waits', () => {
    test('waits are rounded up, so that an obedient client is admitted B136', async () => {
      const server = await sites.serveLimited({ limit: 1, window: '2s' })
      await send(server)
      const waits: (string | undefined)[] = []
      for (const leftMs of [1200, 999, 1]) {
        sites.nowUs = startUs + (2000 - leftMs) * 1000
        waits.push((await send(server)).headers['retry-after'])
      }
      expect(waits).toEqual(['2', '1', '1'])
      sites.nowUs += 1000
      expect((await send(server)).status).toBe(200)
    })

    const fromNow = (value: unknown): number => sites.nowUs + Number(value) * 1e6
    type Told = (headers: http.IncomingHttpHeaders) => number
    test.each<[string, Told]>([
      ['Retry-After', (headers) => fromNow(headers['retry-after'])],
      ['t of draft-8', ({ ratelimit }) => fromNow(/;t=(\d+)$/.exec(ratelimit as string)?.[1])],
      ['RateLimit-Reset', (headers) => fromNow(headers['ratelimit-reset'])],
      ['X-RateLimit-Reset', (headers) => Number(headers['x-ratelimit-reset']) * 1e6],
    ])(
      'a denied client that comes back at the whole second of %s is admitted, and not one before B136 B142',
      async (_, told) => {
        const server = await sites.serveLimited({ limit: 1, window: '1500ms', headers: headerSets })
        for (const sinceUs of [0, 1, 300_000, 500_001, 1_499_999]) {
          const endUs = sites.nowUs - (sites.nowUs % 1.5e6) + 4.5e6
          sites.nowUs = endUs - 1.5e6 + sinceUs
          await send(server)
          const denied = await send(server)
          expect(denied.status).toBe(429)
          const toldUs = told(denied.headers)
          expect(toldUs - 1e6).toBeLessThan(endUs)
          sites.nowUs = toldUs
          expect((await send(server)).status).toBe(200)
        }
      },
    )

    test.each([
      ['fixed-window', 60],
      ['sliding-window-log', 60],
      ['sliding-window-counter', 120],
      ['sliding-window-ring', 120],
      ['token-bucket', 60],
      ['gcra', 60],
    ])(
      '%s: a denial at any moment tells of a wait of at least 1 s and at most %d s B138',
      async (algorithm, most) => {
        const key = byApiKey('x-api-key')
        const server = await sites.serveLimited({ algorithm, limit: 1, headers: headerSets, key })
        for (const sinceUs of [0, 1, 1e6, 30e6, 59_999_999]) {
          const client = { headers: { 'x-api-key': String(sinceUs) } }
          sites.nowUs = startUs + sinceUs
          await send(server, client)
          const { status, headers } = await send(server, client)
          expect(status).toBe(429)
          for (const wait of [Number(headers['retry-after']), Number(headers['ratelimit-reset'])]) {
            expect(wait).toBeGreaterThanOrEqual(1)
            expect(wait).toBeLessThanOrEqual(most)
          }
        }
      },
    )

    test('retryJitterMs makes the waits of a denied client longer, all by as much', async () => {
      const server = await sites.serveLimited({ limit: 1, headers: headerSets, retryJitterMs: 3000 })
      expect(limiterHeaders(await send(server))).toMatchObject({ 'ratelimit-reset': '60' })
      for (let i = 0; i < 10; i++) {
        const { body, headers } = await send(server)
        const wait = Number(headers['retry-after'])
        expect([60, 61, 62, 63]).toContain(wait)
        expect(headers).toMatchObject({
          ratelimit: `"1-per-1m";r=0;t=${wait}`,
          'ratelimit-reset': String(wait),
          'x-ratelimit-reset': String(startUs / 1e6 + wait),
        })
        expect(JSON.parse(body).detail).toBe(`Try again in ${wait} seconds.`)
      }
    })
  })
}
