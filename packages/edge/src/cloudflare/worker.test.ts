import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { WebSocket } from 'ws'
import { startWorkerd, type Workerd } from '../../test/workerd.js'

describe('a Worker that counts in Durable Objects', () => {
  let workerd: Workerd
  beforeAll(async () => {
    workerd = await startWorkerd('app-worker.js', {
      durableObjects: { RATE_LIMITS: { className: 'CountingObject', useSQLite: true } },
    })
  })
  afterAll(() => workerd.stop())

  const send = (path: string, id: string): Promise<Response> =>
    fetch(new URL(path, workerd.url), { headers: { 'x-id': id } })
  const calls = async (id: string): Promise<number> => (await send('/calls', id)).json() as Promise<number>

  /** How many of so many requests are served, of which a few are under way at any time. */
  async function served(path: string, id: string, requests: number): Promise<number> {
    let left = requests
    let count = 0
    const client = async (): Promise<void> => {
      while (left-- > 0) {
        const { status } = await send(path, id)
        if (status === 200) count += 1
        else expect(status).toBe(429)
      }
    }
    await Promise.all(Array.from({ length: 20 }, client))
    return count
  }

  test('admits the limit, whatever comes at once, and asks the object for each request', async () => {
    const id = randomUUID()
    expect(await served('/exact', id, 600)).toBe(500)
    expect(await calls(id)).toBe(600)
  })

  test('with reserve spends leases by itself, across its requests, up to the limit', async () => {
    const id = randomUUID()
    expect(await served('/leased', id, 600)).toBe(500)
    expect(await calls(id)).toBeLessThan(300)
  })

  test('upgrades to a WebSocket, whose handshake tells of the limit', async () => {
    const url = new URL('/socket', workerd.url)
    url.protocol = 'ws:'
    const socket = new WebSocket(url, { headers: { 'x-id': randomUUID() } })
    const [[{ headers }]] = await Promise.all([once(socket, 'upgrade'), once(socket, 'open')])
    expect(headers['ratelimit-remaining']).toBe('499')
    socket.send('hello')
    expect(String((await once(socket, 'message'))[0])).toBe('hello')
    socket.close()
    await once(socket, 'close')
  })

  test('redirects, and tells of the limit', async () => {
    const headers = { 'x-id': randomUUID() }
    const answer = await fetch(new URL('/redirect', workerd.url), { headers, redirect: 'manual' })
    expect([answer.status, answer.headers.get('location')]).toEqual([302, 'https://a.example/'])
    expect(answer.headers.get('ratelimit-remaining')).toBe('499')
  })

  test('gives back after a response has gone out', async () => {
    const id = randomUUID()
    for (let i = 0; i < 30; i++)
      expect((await send('/refunded', id)).headers.get('ratelimit-limit')).toBe('500')
    for (;;) {
      const remaining = Number((await send('/refunded', id)).headers.get('ratelimit-remaining'))
      if (remaining === 499) break
    }
  })
})
