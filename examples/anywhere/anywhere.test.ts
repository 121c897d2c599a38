import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { startProgram, urlIn } from '../program.js'

/** Starts a program on a free port; returns its URL once it listens. */
async function start(program: string): Promise<string> {
  return urlIn(await startProgram(join(__dirname, program)))
}

function open(url: string): Socket {
  const { hostname, port } = new URL(url)
  return connect(Number(port), hostname)
}

function as(user: string, body?: unknown): RequestInit {
  const headers = { authorization: `Bearer demo-${user}` }
  return body === undefined ? { headers } : { headers, method: 'POST', body: JSON.stringify(body) }
}

async function statuses(times: number, url: string, init: (i: number) => RequestInit): Promise<number[]> {
  const all: number[] = []
  for (let i = 0; i < times; i += 1) all.push((await fetch(url, init(i))).status)
  return all
}

describe('the example messages', () => {
  /** Sends lines, and returns those that come back until the server or the client ends. */
  async function talk(url: string, lines: readonly object[], end = true): Promise<object[]> {
    const socket = open(url)
    for (const line of lines) socket.write(`${JSON.stringify(line)}\n`)
    if (end) socket.end()
    const answers = await text(socket)
    return answers
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line))
  }
  const messages = (count: number): object[] => Array.from({ length: count }, (_, i) => ({ text: `m${i}` }))

  test('accepts 5 messages of a user over all connections, and answers the others with when to retry', async () => {
    const url = await start('messages.mjs')
    const hello = { token: 'demo-ann' }
    expect(await talk(url, [hello, ...messages(3)])).toEqual(
      ['m0', 'm1', 'm2'].map((accepted) => ({ accepted })),
    )
    const [first, second, third] = await talk(url, [hello, ...messages(3)])
    expect([first, second]).toEqual([{ accepted: 'm0' }, { accepted: 'm1' }])
    expect(third).toEqual({ denied: 'm2', retryAfterMs: expect.any(Number) })
    expect(await talk(url, [{ token: 'demo-bob' }, ...messages(1)])).toEqual([{ accepted: 'm0' }])
  })

  test('closes a connection that goes on after 10 refusals, and one of nobody at once', async () => {
    const url = await start('messages.mjs')
    const answers = await talk(url, [{ token: 'demo-ann' }, ...messages(30)], false)
    expect(answers).toHaveLength(15)
    expect(await talk(url, [{ token: 'guess' }, ...messages(1)], false)).toEqual([])
  })
})

describe('the example batch', () => {
  const rows = (count: number): number[] => Array.from({ length: count }, (_, i) => i)

  test('charges a batch by its rows, and all of them or none', async () => {
    const url = await start('batch.mjs')
    const first = await fetch(url, as('ann', rows(60)))
    expect(await first.json()).toEqual({ stored: 60, remaining: 40 })
    const second = await fetch(url, as('ann', rows(60)))
    expect(second.status).toBe(429)
    expect(second.headers.get('retry-after')).toMatch(/^[1-9]\d?$/)
    expect(second.headers.get('content-type')).toBe('application/problem+json')
    expect(await (await fetch(url, as('ann', rows(40)))).json()).toEqual({ stored: 40, remaining: 0 })
  })

  test('says of a batch above the limit that no wait helps, and charges nothing', async () => {
    const url = await start('batch.mjs')
    const response = await fetch(url, as('ann', rows(101)))
    expect(response.status).toBe(413)
    expect(response.headers.get('retry-after')).toBeNull()
    expect(await response.json()).toMatchObject({ status: 413 })
    expect((await fetch(url, as('ann', rows(100)))).status).toBe(200)
  })

  test.each<[number, string, RequestInit]>([
    [401, 'of nobody', { method: 'POST', body: '[]' }],
    [400, 'that is no list', as('ann', {})],
    [413, 'of too many bytes', as('ann', ['x'.repeat(100_000)])],
  ])('refuses with %d a body %s', async (status, _, init) => {
    expect((await fetch(await start('batch.mjs'), init)).status).toBe(status)
  })
})

describe('the example graphql', () => {
  const ask = async (url: string, query: string) => (await fetch(url, as('ann', { query }))).json()
  const denied = (path: string) => ({
    message: 'Field report costs 4, more than is left',
    path: [path],
    extensions: { code: 'RATE_LIMITED', retryAfterMs: expect.any(Number) },
    locations: expect.anything(),
  })

  test('charges each field its cost, and one that is denied is null beside the others', async () => {
    const url = await start('graphql.mjs')
    expect(await ask(url, '{ me report }')).toEqual({ data: { me: 'ann', report: 'dear to make' } })
    expect(await ask(url, '{ report }')).toEqual({ data: { report: 'dear to make' } })
    expect(await ask(url, '{ report me }')).toEqual({
      data: { me: 'ann', report: null },
      errors: [denied('report')],
    })
  })

  test('charges a field as often as a query names it', async () => {
    const url = await start('graphql.mjs')
    expect(await ask(url, '{ a: report b: report c: report }')).toEqual({
      data: { a: 'dear to make', b: 'dear to make', c: null },
      errors: [denied('c')],
    })
  })
})

describe('the example upgrade', () => {
  /** The head and body that come back for an upgrade, when the server has ended or echoed. */
  async function upgrade(url: string): Promise<string> {
    const socket = open(url)
    socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n')
    let received = ''
    for await (const chunk of socket) {
      received += chunk
      if (received.startsWith('HTTP/1.1 101') && received.includes('\r\n\r\n')) {
        if (received.endsWith('ping')) break
        socket.write('ping')
      }
    }
    return received
  }

  test('lets 3 upgrades of an address through, and answers the next on its socket as a middleware does', async () => {
    const url = await start('upgrade.mjs')
    for (const remaining of [2, 1, 0]) {
      const answer = await upgrade(url)
      expect(answer).toMatch(/^HTTP\/1\.1 101 Switching Protocols\r\n/)
      expect(answer).toContain(`\r\nRateLimit-Remaining: ${remaining}\r\n`)
      expect(answer).toMatch(/\r\n\r\nping$/)
    }
    const refusal = await upgrade(url)
    const [head, body] = refusal.split('\r\n\r\n') as [string, string]
    expect(head).toMatch(/^HTTP\/1\.1 429 Too Many Requests\r\n/)
    expect(head).toMatch(/\r\nRetry-After: \d+\r\n/)
    expect(head).toMatch(/\r\nRateLimit: "upgrades";r=0;t=\d+\r\n/)
    expect(head).toContain(`\r\nContent-Length: ${body.length}\r\n`)
    expect(head).toContain('\r\nConnection: close')
    expect(JSON.parse(body)).toMatchObject({ status: 429, 'violated-policies': ['upgrades'] })
  })
})

describe('the example two-stages', () => {
  const guess = (i: number): RequestInit => ({ headers: { authorization: `Bearer guess-${i}` } })

  test('stops bad tokens at the limit of their address, and none of them has a count of its own', async () => {
    const url = await start('two-stages.mjs')
    const response = await fetch(url, guess(0))
    expect(response.status).toBe(401)
    expect(response.headers.get('ratelimit-policy')).toBe('"attempts";q=5;w=60')
    expect(await statuses(6, url, (i) => guess(i + 1))).toEqual([401, 401, 401, 401, 429, 429])
    expect(await statuses(1, url, () => as('ann'))).toEqual([429])
  })

  test('gives each account its plan, whatever others behind its address use', async () => {
    const url = await start('two-stages.mjs')
    expect(await statuses(4, url, () => as('bob'))).toEqual([200, 200, 200, 429])
    expect(await statuses(9, url, () => as('ann'))).toEqual([...Array(8).fill(200), 429])
    expect(await statuses(6, url, guess)).toEqual([401, 401, 401, 401, 401, 429])
  })
})
