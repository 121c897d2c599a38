import { once } from 'node:events'
import http from 'node:http'
import net from 'node:net'
import { send, sendTimes } from './http-client.js'
import { until } from './poll.js'
import { textOf } from './raw-client.js'
import { contractPath } from './site.js'
import { recordingLogger, type Sites } from './sites.js'

export function queueTests(sites: Sites): void {
  describe('a leaky bucket', () => {
    test('lets accepted requests wait for their departures and run in their order, and denies the others', async () => {
      const policy = { algorithm: 'leaky-bucket', limit: 20, window: '1s', queue: 2 }
      const server = await sites.serveLimited(policy)
      const answers = await Promise.all(Array.from({ length: 4 }, () => send(server)))
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 429])
      expect(server.handled.map((decision) => decision?.delayMs)).toEqual([0, 50, 100])
      const denied = answers.find(({ status }) => status === 429)
      expect(denied?.headers).toMatchObject({
        'ratelimit-policy': '"20-per-1s";q=3;w=1',
        'retry-after': '1',
      })
    })

    test('does not run the handler of a client that left, and gives its place back if it is the last', async () => {
      const policy = { algorithm: 'leaky-bucket', limit: 1, window: '10s', queue: 1 } as const
      const limiter = sites.limiter({ name: 'queue', ...policy })
      const closed: Promise<unknown>[] = []
      const server = await sites.serve(({ rateLimit }) => ({
        app: [rateLimit({ limiter })],
        before: (response) => {
          closed.push(once(response, 'close'))
        },
      }))
      const places = async () => (await limiter.peek({ key: 'ip:127.0.0.1', cost: 0 })).remaining
      await send(server)
      const request = http.get({ host: '127.0.0.1', port: server.port, path: contractPath, agent: false })
      request.on('error', () => {})
      await until(async () => (await places()) === 0)
      request.destroy()
      await closed[1]
      await until(async () => (await places()) > 0)
      expect(await places()).toBe(1)
      expect(server.handled).toHaveLength(1)
      expect(server.errors).toEqual([])
    })

    test('does not run handlers for pipelined requests whose client left', async () => {
      const policy = { algorithm: 'leaky-bucket', limit: 5, window: '1s', queue: 9 } as const
      const limiter = sites.limiter(policy)
      const server = await sites.serve(({ rateLimit }) => ({ app: [rateLimit({ limiter })] }))
      const socket = net.connect(server.port, '127.0.0.1')
      socket.on('error', () => {})
      socket.write(textOf({}).repeat(4))
      await until(async () => (await limiter.peek({ key: 'ip:127.0.0.1', cost: 0 })).remaining === 6)
      socket.destroy()
      expect(await sendTimes(server, 1)).toEqual([200])
      expect(server.handled).toHaveLength(2)
      // Where a framework tells at once that a client left, the last place is free again.
      expect([600, 800]).toContain(server.handled[1]?.delayMs)
    })

    test('whose queue is longer than clients wait is warned of', async () => {
      const { lines, logger } = recordingLogger()
      await sites.serveLimited({ algorithm: 'leaky-bucket', limit: 1, window: '1m', queue: 2, logger })
      expect(lines).toEqual([expect.stringMatching(/wait 2m .*SLUICE_LONG_QUEUE/)])
    })
  })
}
