import { Readable } from 'node:stream'
import { byApiKey } from '@sluice/core'
import { limiterHeaders, send, sendTimes } from './http-client.js'
import { pipeline, statusesOf } from './raw-client.js'
import { contractPath } from './site.js'
import { lasting, type Sites } from './sites.js'

/** Other ways to write the path of the route; a router takes some of them for it. */
const spellings = [
  '/API/ITEM',
  '/api/item/',
  '//api/item',
  '/api//item',
  '/api/./item',
  '/api/x/../item',
  '/api/%69tem',
  '/api%2Fitem',
  '/api/item%00',
  '/api/item;v=1',
  '/api/item.json',
  '/api/item?',
  '/api/item?limit=0#x',
  '/api\\item',
  'http://127.0.0.1/api/item',
  'http://other.example/api/item?x',
]

export function handlerTests(sites: Sites): void {
  describe('what reaches the handler', () => {
    test('is what the limit admits, of requests that all come at once', async () => {
      const server = await sites.serveLimited({ ...lasting, limit: 20 })
      const statuses = await Promise.all(Array.from({ length: 50 }, async () => (await send(server)).status))
      expect(statuses.filter((status) => status === 200)).toHaveLength(20)
      expect(statuses.filter((status) => status === 429)).toHaveLength(30)
      expect(server.handled).toHaveLength(20)
    })

    test.each(['app', 'group', 'route'])(
      'is counted by a limiter of the %s, whatever its path is spelled like B29',
      async (place) => {
        const limiter = sites.limiter({ ...lasting, limit: 100 })
        const server = await sites.serve(({ rateLimit }) => ({ [place]: [rateLimit({ limiter })] }))
        const used = async (): Promise<number> =>
          100 - (await limiter.peek({ key: 'ip:127.0.0.1' })).remaining
        const wrong: unknown[] = []
        for (const target of [contractPath, ...spellings]) {
          const before = { used: await used(), handled: server.handled.length }
          await pipeline(server, [{ target }])
          const handled = server.handled.length - before.handled
          const charged = (await used()) - before.used
          if (charged > 1 || charged < handled) wrong.push({ target, handled, charged })
        }
        expect(wrong).toEqual([])
        expect(server.handled.length).toBeGreaterThan(1)
      },
    )

    test('is the same whether the target is a path or a whole URL', async () => {
      const server = await sites.serveLimited({ ...lasting, limit: 2 })
      const targets = [`http://127.0.0.1${contractPath}`, contractPath, `http://a.example${contractPath}?x`]
      const requests = targets.map((target) => ({ target }))
      expect(statusesOf(await pipeline(server, requests))).toEqual([200, 200, 429])
      expect(server.handled).toHaveLength(2)
    })

    test('may have a very long path, which is counted like any other', async () => {
      const server = await sites.serveLimited({ ...lasting, limit: 2 })
      const long = 'x'.repeat(12_000)
      const statuses: unknown[] = []
      for (const path of [`${contractPath}?${long}`, `/${long}`, `/${long}`, `${contractPath}?${long}`]) {
        statuses.push((await send(server, { path })).status)
      }
      expect(statuses).toEqual([200, 404, 429, 429])
      expect(server.handled).toHaveLength(1)
    })

    test.each([
      ['OPTIONS that are no preflight', { method: 'OPTIONS' }],
      ['a method that the route has not', { method: 'DELETE' }],
      ['an unknown path of the group', { path: '/api/unknown' }],
      ['an unknown path', { path: '/unknown' }],
    ])('does not include %s, which a limiter of the application counts B35', async (_, request) => {
      const server = await sites.serveLimited({ ...lasting, limit: 2 })
      for (const remaining of ['1', '0']) {
        const { status, headers } = await send(server, request)
        expect(headers['ratelimit-remaining']).toBe(remaining)
        expect(status).not.toBe(429)
      }
      expect((await send(server, request)).status).toBe(429)
      expect((await send(server)).status).toBe(429)
      expect(server.handled).toHaveLength(0)
      expect(server.errors).toEqual([])
    })

    test('is charged once for a HEAD request, which shares the limit of GET B34', async () => {
      const server = await sites.serve(({ rateLimit }) => ({ route: [rateLimit({ ...lasting, limit: 3 })] }))
      const remaining: unknown[] = []
      for (const method of ['GET', 'HEAD', 'GET', 'HEAD']) {
        const { status, headers } = await send(server, { method })
        remaining.push([status, headers['ratelimit-remaining']])
      }
      expect(remaining).toEqual([
        [200, '2'],
        [200, '1'],
        [200, '0'],
        [429, '0'],
      ])
      expect(server.handled).toHaveLength(3)
    })

    test('is counted by all lines of a header that comes twice', async () => {
      const server = await sites.serveLimited({ ...lasting, limit: 1, key: byApiKey('x-api-key') })
      const twice = { lines: ['X-Api-Key: a', 'X-Api-Key: b'] }
      const responses = await pipeline(server, [
        twice,
        { lines: ['X-Api-Key: a, b'] },
        { lines: ['X-Api-Key: a'] },
      ])
      expect(statusesOf(responses)).toEqual([200, 429, 200])
      expect(server.handled.map((decision) => decision?.key)).toEqual(['a, b', 'a'].map(byApiKey.of))
    })

    test('stays charged when the handler fails, whose error goes to the error path as it is, once', async () => {
      const error = new Error('from the handler')
      const handler = (): never => {
        throw error
      }
      const server = await sites.serveLimited({ ...lasting, limit: 2 }, { handler })
      expect(await sendTimes(server, 3)).toEqual([500, 500, 429])
      expect(server.errors).toEqual([error, error])
      expect(server.errors[0]).toBe(error)
    })

    test('may answer with a stream, whose headers tell of the limit', async () => {
      const handler = (): Readable => Readable.from(['first ', 'second'])
      const server = await sites.serveLimited({ ...lasting, limit: 2 }, { handler })
      const answer = await send(server)
      expect(answer).toMatchObject({ status: 200, body: 'first second' })
      expect(limiterHeaders(answer)).toMatchObject({ 'ratelimit-limit': '2', 'ratelimit-remaining': '1' })
      expect(await sendTimes(server, 2)).toEqual([200, 429])
      expect(server.handled).toHaveLength(2)
      expect(server.errors).toEqual([])
    })
  })
}
