import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'

let server: ChildProcess
let url: string

/** Starts the server on a free port, and waits for its line. */
async function start(env: NodeJS.ProcessEnv): Promise<string> {
  const started = spawn(process.execPath, [join(__dirname, 'server.mjs')], {
    env: { ...process.env, PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  server = started
  let printed = ''
  for await (const chunk of started.stdout) {
    printed += chunk
    if (printed.includes('\n')) break
  }
  url = /http:\/\/127\.0\.0\.1:\d+/.exec(printed)?.[0] ?? ''
  return printed
}

/** Sends requests one after the other; answers with their statuses. */
async function statuses(times: number, path: string, init?: RequestInit): Promise<number[]> {
  const answered: number[] = []
  for (let i = 0; i < times; i += 1) {
    const response = await fetch(url + path, init)
    await response.arrayBuffer()
    answered.push(response.status)
  }
  return answered
}

afterEach(async () => {
  const gone = once(server, 'exit')
  server.kill()
  expect(await gone).toEqual([0, null])
})

const as = (token: string): RequestInit => ({ headers: { authorization: `Bearer ${token}` } })

describe.each([
  ['memory', () => ({ REDIS_URL: '' })],
  ['Redis', () => ({ REDIS_URL: `${process.env.REDIS_URL}?keyPrefix=test:${randomUUID()}:` })],
])('the Fastify example, counting in %s', (store, env) => {
  beforeEach(async () => {
    expect(await start(env())).toContain(`counting in ${store}`)
  })
  test('limits a route by itself, whatever its parameters', async () => {
    expect(await statuses(5, '/search/a')).toEqual([200, 200, 200, 200, 200])
    const denied = await fetch(`${url}/search/b`)
    expect(denied.status).toBe(429)
    expect(denied.headers.get('ratelimit')).toMatch(
      /^"60-per-1m";r=54;t=\d+, "GET \/search\/:topic";r=0;t=\d+$/,
    )
    expect(await denied.json()).toMatchObject({ 'violated-policies': ['GET /search/:topic'] })
  })

  test('counts both routes of a group together', async () => {
    const post = { method: 'POST' }
    expect(await statuses(2, '/login', post)).toEqual([401, 401])
    expect(await statuses(2, '/password-reset', post)).toEqual([202, 429])
  })

  test('counts accounts after authentication, each by itself', async () => {
    expect(await statuses(6, '/me', as('token-ada'))).toEqual([200, 200, 200, 200, 200, 429])
    expect(await statuses(1, '/me', as('token-bob'))).toEqual([200])
    expect(await statuses(1, '/me', as('guessed'))).toEqual([401])
  })

  test('stops guesses of URLs, and of tokens at the limit for all', async () => {
    expect((await statuses(11, '/guess')).filter((status) => status === 429)).toHaveLength(1)
    expect(new Set(await statuses(49, '/me', as('guessed')))).toEqual(new Set([401]))
    expect(await statuses(1, '/me', as('token-ada'))).toEqual([429])
    expect(await statuses(2, '/health')).toEqual([200, 200])
  })
})

test('the Fastify example serves pages and refuses logins while Redis is away', async () => {
  await start({ REDIS_URL: 'redis://127.0.0.1:1' })
  expect(await statuses(1, '/search/a')).toEqual([200])
  expect(await statuses(1, '/login', { method: 'POST' })).toEqual([503])
})
