import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { WebSocket } from 'ws'
import { startProgram, urlIn } from '../program.js'

beforeAll(async () => {
  const tsc = join(__dirname, '../../node_modules/typescript/bin/tsc')
  await promisify(execFile)(process.execPath, [tsc, '--project', __dirname])
}, 120_000)

/** Starts the server on a free port, counting in Redis or in memory, and waits for its line. */
async function start(redisUrl: string): Promise<string> {
  const printed = await startProgram(join(__dirname, 'dist/main.js'), { REDIS_URL: redisUrl }, '\n', 'ignore')
  expect(printed).toContain(`counting in ${redisUrl ? 'Redis' : 'memory'}`)
  return urlIn(printed)
}

/** Sends requests one after the other; their statuses, and the last response. */
async function send(times: number, url: string, init?: RequestInit) {
  const statuses: number[] = []
  let last = new Response()
  for (let i = 0; i < times; i += 1) {
    last = await fetch(url, init)
    await last.arrayBuffer()
    statuses.push(last.status)
  }
  return { statuses, headers: last.headers }
}

const post = { method: 'POST' }
const withKey = (key: string): RequestInit => ({ headers: { 'x-api-key': key } })

describe('the NestJS example', () => {
  describe.each([
    ['memory', () => ''],
    ['Redis', () => `${process.env.REDIS_URL}?keyPrefix=test:${randomUUID()}:`],
  ])('counting in %s', (_, redisUrl) => {
    test('limits the whole application, unknown paths included, but for its health', async () => {
      const url = await start(redisUrl())
      expect(await (await fetch(url)).json()).toEqual({ remaining: 59 })
      const { statuses, headers } = await send(60, `${url}/nowhere`)
      expect(statuses).toEqual([...Array(59).fill(404), 429])
      expect(headers.get('ratelimit')).toMatch(/^"app";r=0;t=\d+$/)
      expect((await send(1, `${url}/health`)).statuses).toEqual([200])
    })

    test('limits logins on their own', async () => {
      const url = await start(redisUrl())
      const { statuses, headers } = await send(4, `${url}/login`, post)
      expect(statuses).toEqual([401, 401, 401, 429])
      expect(headers.get('ratelimit-policy')).toBe('"app";q=60;w=900, "login";q=3;w=900')
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
    })

    test('gives each API key its plan', async () => {
      const report = `${await start(redisUrl())}/api/report`
      expect((await send(6, report, withKey('unknown'))).statuses).toEqual([...Array(5).fill(200), 429])
      const pro = await send(10, report, withKey('demo-pro'))
      expect(pro.statuses).toEqual(Array(10).fill(200))
      expect(pro.headers.get('ratelimit-policy')).toMatch(/"app".*"burst".*"daily"/)
      const enterprise = await send(10, report, withKey('demo-enterprise'))
      expect(enterprise.headers.get('ratelimit-policy')).toBe('"app";q=60;w=900')
    })

    test('serves of a flood of messages what the limit admits', async () => {
      const socket = new WebSocket(`${(await start(redisUrl())).replace('http', 'ws')}/chat`)
      await once(socket, 'open')
      const events: string[] = []
      const answered = new Promise<void>((resolve) => {
        socket.on('message', (text) => {
          if (events.push(JSON.parse(String(text)).event) === 20) resolve()
        })
      })
      for (let i = 0; i < 20; i += 1) socket.send(JSON.stringify({ event: 'say', data: 'hi' }))
      await answered
      socket.terminate()
      expect(events.filter((event) => event === 'said')).toHaveLength(5)
      expect(events.filter((event) => event === 'exception')).toHaveLength(15)
    })
  })

  test('serves pages and refuses logins while Redis is away', async () => {
    const url = await start('redis://127.0.0.1:1')
    expect((await send(1, `${url}/api/report`)).statuses).toEqual([200])
    const { statuses, headers } = await send(1, `${url}/login`, post)
    expect(statuses).toEqual([503])
    expect(headers.get('retry-after')).toBe('1')
  })
})
