import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { type RedisServer, startRedis } from '../../scripts/servers/redis.cjs'

interface Alert {
  readonly type: string | undefined
  readonly body: unknown
}

describe('the example alerts', () => {
  const alerts: Alert[] = []
  const errors: string[] = []
  let status = 200
  let receiver: Server
  let redis: RedisServer
  let limited: ChildProcess
  let url: string

  beforeAll(async () => {
    receiver = createServer(async (req, res) => {
      alerts.push({ type: req.headers['content-type'], body: JSON.parse(await text(req)) })
      res.writeHead(status).end('ok')
    }).listen(0, '127.0.0.1')
    await once(receiver, 'listening')
    redis = await startRedis()
    const { port } = receiver.address() as AddressInfo
    const server = spawn(process.execPath, [join(__dirname, 'alerts.mjs')], {
      env: {
        ...process.env,
        REDIS_URL: redis.url,
        ALERT_URL: `http://127.0.0.1:${port}/hook`,
        PORT: '0',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    limited = server
    createInterface(server.stderr).on('line', (line) => errors.push(line))
    const [greeting] = await once(createInterface(server.stdout), 'line')
    url = greeting.replace('listening on ', '')
  })

  afterAll(async () => {
    limited?.kill()
    receiver?.close()
    await redis?.stop()
  })

  /** Sends requests, all of which must be served, until something has happened. */
  async function requestUntil(happened: () => boolean): Promise<void> {
    do {
      expect((await fetch(`${url}/api`)).status).toBe(200)
      await new Promise((resolve) => setTimeout(resolve, 50))
    } while (!happened())
  }

  test('post once that the store is down, with cause and limiters, and once that it is up, with time and count', async () => {
    await requestUntil(() => true)
    expect(alerts).toEqual([])
    await redis.stop()
    await requestUntil(() => alerts.length > 0)
    redis = await startRedis({ port: redis.port })
    await requestUntil(() => alerts.length > 1)
    const about = (text: RegExp): Alert => ({
      type: 'application/json',
      body: { text: expect.stringMatching(text) },
    })
    expect(alerts.splice(0)).toEqual([
      about(/^The store of site, api is down: Redis .+/),
      about(/^The store of site, api is up again after \d+\.\d s; \d+ requests were decided without it$/),
    ])
  })

  test('that cannot be sent refuse no request, and are written to the log', async () => {
    status = 500
    await redis.stop()
    await requestUntil(() => errors.some((line) => line.startsWith('This alert')))
    expect(errors.at(-1)).toMatch(
      /^This alert could not be sent \(status 500\): The store of site, api is down/,
    )
    expect(limited.exitCode).toBeNull()
  })
})
