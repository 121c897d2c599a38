import http from 'node:http'
import { send, sendTimes } from './http-client.js'
import { sendStream, withSession } from './http2-client.js'
import { pipeline, type RawRequest, statusesOf } from './raw-client.js'
import { lasting, type Sites } from './sites.js'

export function connectionsTests(sites: Sites, http2: boolean): void {
  describe('requests of one connection', () => {
    const times = (count: number, request: RawRequest = {}): RawRequest[] => Array(count).fill(request)

    test('are decided one by one, in their order, though they come in one write', async () => {
      const server = await sites.serveLimited({ ...lasting, limit: 10 })
      const responses = await pipeline(server, times(20))
      expect(statusesOf(responses)).toEqual([...Array(10).fill(200), ...Array(10).fill(429)])
      const remaining = responses.map((response) => /ratelimit-remaining: (\d+)/i.exec(response)?.[1])
      expect(remaining).toEqual(['9', '8', '7', '6', '5', '4', '3', '2', '1', ...Array(11).fill('0')])
      expect(server.handled).toHaveLength(10)
    })

    test('may be of several keys in one write', async () => {
      const key = (_: unknown, { header }: { header(name: string): string | undefined }) => header('x-id')
      const server = await sites.serveLimited({ ...lasting, limit: 2, key })
      const ids = ['a', 'b', 'a', 'a', 'b', 'c', 'b']
      const requests = ids.map((id) => ({ lines: [`X-Id: ${id}`] }))
      const responses = await pipeline(server, requests)
      expect(statusesOf(responses)).toEqual([200, 200, 200, 429, 200, 200, 429])
      expect(server.handled.map((decision) => decision?.key)).toEqual(['a', 'b', 'a', 'b', 'c'])
    })

    test('go on after a denial, whose body nobody reads', async () => {
      const server = await sites.serveLimited({ ...lasting, limit: 1 })
      const post = { method: 'POST', body: 'x'.repeat(100_000) }
      // Its lines after the empty one are the body.
      const chunked = { method: 'POST', lines: ['Transfer-Encoding: chunked', '', '5', 'hello', '0'] }
      const responses = await pipeline(server, [{}, post, chunked, { method: 'HEAD' }, post, {}])
      expect(statusesOf(responses)).toEqual([200, 429, 429, 429, 429, 429])
      expect(server.handled).toHaveLength(1)
      expect(server.errors).toEqual([])
    })

    test('are counted when a connection is kept, which stays open after a denial', async () => {
      const server = await sites.serveLimited({ ...lasting, limit: 2 })
      const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
      const answers: unknown[] = []
      for (let i = 0; i < 5; i++) {
        const { status, reused } = await send(server, { agent })
        answers.push([status, reused])
      }
      agent.destroy()
      expect(answers).toEqual([
        [200, false],
        [200, true],
        [429, true],
        [429, true],
        [429, true],
      ])
      expect(server.handled).toHaveLength(2)
    })

    if (http2) {
      test('are counted over HTTP/2, where they come side by side', async () => {
        const server = await sites.serveLimited({ ...lasting, limit: 10 }, {}, 'http2')
        const statuses = await withSession(server, (session) =>
          Promise.all(Array.from({ length: 30 }, async () => (await sendStream(session)).status)),
        )
        expect(statuses.filter((status) => status === 200)).toHaveLength(10)
        expect(statuses.filter((status) => status === 429)).toHaveLength(20)
        expect(server.handled).toHaveLength(10)
        expect(server.handled[0]?.key).toBe('ip:127.0.0.1')
      })

      test('go on after a denial over HTTP/2, whose body nobody reads', async () => {
        const server = await sites.serveLimited({ ...lasting, limit: 1 }, {}, 'http2')
        const post = { method: 'POST', body: 'x'.repeat(100_000) }
        const statuses: unknown[] = []
        await withSession(server, async (session) => {
          for (const request of [{}, post, post, {}])
            statuses.push((await sendStream(session, request)).status)
        })
        expect(statuses).toEqual([200, 429, 429, 429])
        expect(server.handled).toHaveLength(1)
        expect(server.errors).toEqual([])
      })
    } else {
      test('are none over HTTP/2, which reaches no handler and is not counted', async () => {
        const server = await sites.serveLimited({ ...lasting, limit: 1 })
        await expect(withSession(server, (session) => sendStream(session))).rejects.toThrow()
        expect(server.handled).toHaveLength(0)
        expect(await sendTimes(server, 2)).toEqual([200, 429])
      })
    }
  })
}
