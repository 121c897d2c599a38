import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { startProgram, urlIn } from '../program.js'

const program = join(__dirname, 'server.mjs')
interface Server {
  readonly url: string
  readonly printed: string
}

/** Starts the server on a free port and waits until it has printed its last line. */
async function start(env: NodeJS.ProcessEnv): Promise<Server> {
  const printed = await startProgram(program, { REDIS_URL: '', ...env }, 'enterprise')
  return { url: urlIn(printed), printed }
}

/** Runs the server until it ends by itself. */
async function fail(env: NodeJS.ProcessEnv): Promise<{ code: number; stderr: string }> {
  const options = { env: { ...process.env, REDIS_URL: '', PORT: '0', ...env } }
  return promisify(execFile)(process.execPath, [program], options).then(
    () => ({ code: 0, stderr: '' }),
    (error) => ({ code: error.code, stderr: error.stderr }),
  )
}

const functionalRedis = (): string => `${process.env.REDIS_URL}?keyPrefix=test:${randomUUID()}:`

describe.each([
  ['memory', () => ({})],
  ['Redis', () => ({ REDIS_URL: functionalRedis() })],
])('the example server, counting in %s', (store, env) => {
  test('prints its address, and curl lines that each end in a 429 with its headers', async () => {
    const { url, printed } = await start(env())
    expect(printed).toContain(`listening on ${url}, counting in ${store}`)
    const lines = printed.split('\n').filter((line) => line.startsWith('  for i'))
    const paths = lines.map((line) => new URL(line.match(/http:\S+/)?.[0] ?? '').pathname)
    expect(paths).toEqual([
      '/fixed-window',
      '/sliding-window-counter',
      '/sliding-window-log',
      '/sliding-window-ring',
      '/token-bucket',
      '/gcra',
      '/login',
      '/api',
      '/api',
      '/api',
    ])
    for (const line of lines.slice(0, -1)) {
      const { stdout } = await promisify(execFile)('bash', ['-c', line])
      const last = stdout.trim().split('HTTP/1.1 ').at(-1)
      expect(last).toMatch(/^429 /)
      expect(last).toMatch(/^RateLimit-Policy: "/m)
      expect(last).toMatch(/^RateLimit: "/m)
      expect(last).toMatch(/^Retry-After: [1-9]\d*\r?$/m)
    }
  })

  test('gives an enterprise key no limit of its own', async () => {
    const { url } = await start(env())
    for (let i = 0; i < 20; i += 1) {
      const response = await fetch(`${url}/api`, { headers: { 'x-api-key': 'demo-enterprise' } })
      expect(response.status).toBe(200)
    }
  })
})

describe('two example servers on one Redis', () => {
  test.each([
    'fixed-window',
    'sliding-window-counter',
    'sliding-window-log',
    'sliding-window-ring',
    'token-bucket',
    'gcra',
  ])('admit exactly the limit of /%s between them', async (route) => {
    const REDIS_URL = functionalRedis()
    const servers = await Promise.all([start({ REDIS_URL }), start({ REDIS_URL })])
    const statuses = await Promise.all(
      Array.from({ length: 40 }, async (_, i) => (await fetch(`${servers[i % 2]?.url}/${route}`)).status),
    )
    expect(statuses.filter((status) => status === 200)).toHaveLength(5)
    expect(statuses.filter((status) => status === 429)).toHaveLength(35)
  })
})

describe('the example server refuses to start, and says why,', () => {
  test('on a port in use', async () => {
    const blocker = createServer().listen(0, '127.0.0.1')
    await once(blocker, 'listening')
    const { port } = blocker.address() as AddressInfo
    const { code, stderr } = await fail({ PORT: String(port) })
    blocker.close()
    expect(code).toBe(1)
    expect(stderr).toContain(`Port ${port} is in use`)
  })

  test.each([
    [{ PORT: 'abc' }, 'PORT is "abc"'],
    [{ PORT: '70000' }, 'PORT is "70000"'],
    [{ REDIS_URL: 'localhost:6379' }, 'REDIS_URL is "localhost:6379"'],
    [
      { REDIS_URL: 'redis://127.0.0.1:1' },
      'Redis cannot be used at REDIS_URL redis://127.0.0.1:1: connect ECONNREFUSED',
    ],
  ])('with %j', async (env, problem) => {
    const { code, stderr } = await fail(env)
    expect(code).toBe(1)
    expect(stderr).toContain(problem)
    expect(stderr).not.toContain('    at ')
  })
})
