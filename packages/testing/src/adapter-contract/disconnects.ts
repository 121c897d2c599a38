import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import { Readable } from 'node:stream'
import { send, sendTimes } from './http-client.js'
import { withSession } from './http2-client.js'
import { turns, until } from './poll.js'
import { contractPath, type TestServer } from './site.js'
import { lasting, type Sites } from './sites.js'

export function disconnectsTests(sites: Sites, speaksHttp2: boolean): void {
  describe('a client that leaves', () => {
    /** A request that the test cuts short. */
    function begin({ port }: TestServer): http.ClientRequest {
      const request = http.get({ host: '127.0.0.1', port, path: contractPath, agent: false })
      return request.on('error', () => {})
    }

    test('while its key is looked up is counted, as its handler runs', async () => {
      const closed: Promise<unknown>[] = []
      let leaving: http.ClientRequest | undefined
      const key = async (): Promise<string> => {
        leaving?.destroy()
        if (leaving) await closed[0]
        return 'k'
      }
      const server = await sites.serveLimited(
        { ...lasting, limit: 2, key },
        { before: (response) => void closed.push(once(response, 'close')) },
      )
      leaving = begin(server)
      await until(() => server.handled.length > 0)
      leaving = undefined
      expect(await sendTimes(server, 2)).toEqual([200, 429])
      expect(server.handled.map((decision) => decision?.remaining)).toEqual([1, 0])
      expect(server.errors).toEqual([])
    })

    test('in the middle of a streamed reply stays charged', async () => {
      const limiter = sites.limiter({ ...lasting, limit: 2 })
      let closed: Promise<unknown> | undefined
      const server = await sites.serve(({ rateLimit }) => ({
        app: [rateLimit({ limiter, refundWhen: () => true })],
        before: (response) => {
          closed = once(response, 'close')
        },
        handler: () => {
          const endless = new Readable({ read() {} })
          endless.push('first')
          return endless
        },
      }))
      const request = begin(server)
      const [response] = await once(request, 'response')
      await once(response, 'data')
      request.destroy()
      await closed
      await turns(10)
      expect(await limiter.peek({ key: 'ip:127.0.0.1', cost: 0 })).toMatchObject({ remaining: 1 })
    })

    test('after its reply is asked about once, and others are not', async () => {
      const asked: unknown[] = []
      const closed: Promise<unknown>[] = []
      const server = await sites.serveLimited(
        { ...lasting, limit: 2, refundWhen: () => asked.push('asked') > 2 },
        { before: (response) => void closed.push(once(response, 'close')) },
      )
      const agent = new http.Agent({ keepAlive: true })
      await send(server, { agent })
      agent.destroy()
      await Promise.all(closed)
      expect(asked).toEqual(['asked'])
      expect(await sendTimes(server, 2)).toEqual([200, 429])
      expect(asked).toEqual(['asked', 'asked'])
    })

    if (speaksHttp2) {
      test('by resetting its stream of HTTP/2 stays charged', async () => {
        let closed: Promise<unknown> | undefined
        const server = await sites.serveLimited(
          { ...lasting, limit: 3, refundWhen: () => true },
          {
            before: (response) => {
              closed = once(response, 'close')
            },
            handler: async () => {
              await closed
              return 401
            },
          },
          'http2',
        )
        await withSession(server, async (session) => {
          for (let i = 0; i < 5; i++) {
            const seen = server.handled.length
            const stream = session.request({ ':path': contractPath })
            stream.on('error', () => {})
            let answered = false
            stream.on('response', () => {
              answered = true
            })
            await until(() => server.handled.length > seen || answered)
            stream.close(http2.constants.NGHTTP2_CANCEL)
            await Promise.all([closed, once(stream, 'close')])
          }
        })
        expect(server.handled).toHaveLength(3)
      })
    }
  })
}
