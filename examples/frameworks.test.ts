import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { startProgram } from './program.js'

/** Starts the server of a framework on a free port; returns its URL once it listens. */
async function start(framework: string, REDIS_URL: string): Promise<string> {
  const program = join(__dirname, framework.toLowerCase(), 'server.mjs')
  const printed = await startProgram(program, { REDIS_URL }, '\n', 'ignore')
  const counting = REDIS_URL ? 'Redis' : 'memory'
  const [, url] =
    RegExp(`^${framework} listening on (http://127.0.0.1:\\d+), counting in ${counting}`).exec(printed) ?? []
  if (!url) throw new Error(`The server printed ${JSON.stringify(printed)}`)
  return url
}

/** The statuses of so many requests, one after the other, and the last response. */
async function send(times: number, url: string, init?: RequestInit) {
  const statuses: number[] = []
  let last = await fetch(url, init)
  for (let request = 1; request < times; request++) {
    statuses.push(last.status)
    last = await fetch(url, init)
  }
  return { statuses: [...statuses, last.status], last }
}

const post = { method: 'POST' }
const withKey = (key: string): RequestInit => ({ headers: { 'x-api-key': key } })

describe.each(['Express', 'Koa'])('the example for %s', (framework) => {
  describe.each([
    ['memory', () => ''],
    ['Redis', () => `${process.env.REDIS_URL}?keyPrefix=test:${randomUUID()}:`],
  ])('counting in %s', (_, redisUrl) => {
    test('limits the whole application, unknown paths included', async () => {
      const url = await start(framework, redisUrl())
      expect(await (await fetch(url)).json()).toEqual({ remaining: 59 })
      const { statuses, last } = await send(60, `${url}/nowhere`)
      expect(statuses).toEqual([...Array(59).fill(404), 429])
      expect(last.headers.get('ratelimit')).toMatch(/^"app";r=0;t=\d+$/)
    })

    test('limits logins on their own', async () => {
      const url = await start(framework, redisUrl())
      const { statuses, last } = await send(4, `${url}/login`, post)
      expect(statuses).toEqual([401, 401, 401, 429])
      expect(last.headers.get('ratelimit-policy')).toBe('"app";q=60;w=900, "login";q=3;w=900')
      expect(Number(last.headers.get('retry-after'))).toBeGreaterThan(0)
      expect((await fetch(url)).status).toBe(200)
    })

    test('gives each API key its plan', async () => {
      const report = `${await start(framework, redisUrl())}/api/report`
      const free = await send(6, report, withKey('unknown'))
      expect(free.statuses).toEqual([...Array(5).fill(200), 429])
      const pro = await send(10, report, withKey('demo-pro'))
      expect(pro.statuses).toEqual(Array(10).fill(200))
      expect(pro.last.headers.get('ratelimit-policy')).toMatch(/"app".*"burst".*"daily"/)
      const enterprise = await send(10, report, withKey('demo-enterprise'))
      expect(enterprise.statuses).toEqual(Array(10).fill(200))
      expect(enterprise.last.headers.get('ratelimit-policy')).toBe('"app";q=60;w=900')
    })
  })

  test('serves pages and refuses logins while Redis is away', async () => {
    const url = await start(framework, 'redis://127.0.0.1:1')
    expect((await fetch(`${url}/api/report`)).status).toBe(200)
    const response = await fetch(`${url}/login`, post)
    expect(response.status).toBe(503)
    expect(response.headers.get('retry-after')).toBe('1')
  })
})
