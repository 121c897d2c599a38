import type { Decision, Limiter, SluiceError } from '@sluice/core'
import { Redis } from 'ioredis'
import { adminOf, afterwards, clientOf, eventually, limiter, open, privateServer } from '../test/harness.js'
import { functionalClient, type RedisServer, startRedis } from '../test/redis.js'

/** Starts a stopped server again, and sends requests until one is counted. */
async function countedAgain({ port }: RedisServer, limit: Limiter): Promise<Decision> {
  const again = await startRedis({ port })
  afterwards(() => again.stop())
  return eventually(
    () => limit.consume({ key: 'a' }),
    ({ degraded }) => !degraded,
  )
}

describe('a server that fails', () => {
  test('and was down at the start is used as soon as it answers', async () => {
    const server = await privateServer()
    await server.stop()
    const limit = limiter(open(clientOf(server)), { timeoutMs: 200 })
    expect(await limit.consume({ key: 'a' })).toMatchObject({
      allowed: false,
      reason: 'store-error',
      degraded: true,
    })
    expect(await countedAgain(server, limit)).toMatchObject({ allowed: true, remaining: 2 })
  })

  test('and restarts empty is used again without a restart of ours', async () => {
    const server = await privateServer()
    const limit = limiter(open(clientOf(server)))
    expect(await limit.consume({ key: 'a' })).toMatchObject({ allowed: true, remaining: 2 })
    await server.stop()
    expect(await limit.consume({ key: 'a' })).toMatchObject({ allowed: false, reason: 'store-error' })
    expect(await countedAgain(server, limit)).toMatchObject({ allowed: true, remaining: 2 })
  })

  test('is served past with onStoreError allow, and told of', async () => {
    const server = await privateServer()
    await server.stop()
    const errors: string[] = []
    const limit = limiter(open(clientOf(server)), {
      onStoreError: 'allow',
      onEvent: (event) => event.type === 'store-error' && errors.push((event.error as SluiceError).code),
    })
    expect(await limit.consume({ key: 'a' })).toMatchObject({ allowed: true, degraded: true, policies: [] })
    expect(errors).toEqual(['SLUICE_STORE_FAILED'])
  })

  test('or hangs keeps nobody longer than the budget, and does not charge the call later', async () => {
    const server = await privateServer()
    const limit = limiter(open(clientOf(server)), { timeoutMs: 100 })
    expect(await limit.consume({ key: 'a' })).toMatchObject({ remaining: 2 })
    process.kill(server.pid, 'SIGSTOP')
    const late = await limit.consume({ key: 'a' })
    // The server wakes after the call's deadline and finds the script in its socket.
    await new Promise((resolve) => setTimeout(resolve, 50))
    process.kill(server.pid, 'SIGCONT')
    expect(late).toMatchObject({ allowed: false, reason: 'store-error', degraded: true })
    const next = await eventually(
      () => limit.peek({ key: 'a', cost: 0 }),
      ({ degraded }) => !degraded,
    )
    expect(next).toMatchObject({ remaining: 2 })
  })
})

describe('a busy event loop', () => {
  /** Lets the call go out, and keeps this process from reading the answer until its budget is over. */
  async function stall(call: Promise<Decision>): Promise<Decision> {
    await new Promise(setImmediate)
    const untilMs = performance.now() + 130
    while (performance.now() < untilMs);
    return call
  }

  test('does not make a store fail whose answers have arrived', async () => {
    const limit = limiter(open(functionalClient()), { limit: 2, timeoutMs: 100, onStoreError: 'allow' })
    await limit.peek({ key: 'a' })
    const decisions: Decision[] = []
    for (let i = 0; i < 8; i++) decisions.push(await stall(limit.consume({ key: 'a' })))
    expect(decisions.map(({ reason }) => reason)).toEqual(['ok', 'ok', ...Array(6).fill('quota')])
  })
})

describe('a client', () => {
  test('that pipelines on its own is shared without harm', async () => {
    const client = functionalClient({ enableAutoPipelining: true })
    const limit = limiter(open(client, { duplicate: false }))
    const decisions = await Promise.all(Array.from({ length: 5 }, () => limit.consume({ key: 'a' })))
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(3)
    expect(await client.get('nothing')).toBeNull()
  })

  test.each<[string, (client: Redis) => Promise<unknown>]>([
    ['after it was ready', (client) => client.ping()],
    ['while it connects', async () => {}],
  ])('that has ended is a store that failed, at once: %s', async (_, begin) => {
    const client = functionalClient({ disconnectTimeout: 50 })
    await begin(client)
    await client.quit()
    const limit = limiter(open(client, { duplicate: false }), { timeoutMs: 60_000 })
    expect(await limit.consume({ key: 'a' })).toMatchObject({ reason: 'store-error' })
  })

  test('whose first question fails is asked again', async () => {
    const server = await privateServer()
    const admin = adminOf(server)
    await admin.call('ACL', 'SETUSER', 'limited', 'on', '>secret', '~*', '+@all', '-time')
    const client = new Redis(server.url, { username: 'limited', password: 'secret', disconnectTimeout: 50 })
    const limit = limiter(open(client))
    expect(await limit.consume({ key: 'a' })).toMatchObject({ reason: 'store-error' })
    await admin.call('ACL', 'SETUSER', 'limited', '+time')
    expect(await limit.consume({ key: 'a' })).toMatchObject({ allowed: true })
  })

  test('that may not read a log is a store that failed, not an empty log', async () => {
    const server = await privateServer()
    const admin = adminOf(server)
    await admin.call('ACL', 'SETUSER', 'limited', 'on', '>secret', '~*', '+@all', '-llen')
    const client = new Redis(server.url, { username: 'limited', password: 'secret', disconnectTimeout: 50 })
    const limit = limiter(open(client), { algorithm: 'sliding-window-log' })
    expect(await limit.consume({ key: 'a' })).toMatchObject({ reason: 'store-error' })
  })

  test('of a master that becomes a replica, with its connection left open, finds the new master B99', async () => {
    const old = await privateServer()
    const limit = limiter(open(clientOf(old)))
    expect(await limit.consume({ key: 'a' })).toMatchObject({ remaining: 2 })
    const admin = adminOf(old)
    const connections = async () =>
      Number(/total_connections_received:(\d+)/.exec(await admin.info('stats'))?.[1])
    await admin.replicaof('127.0.0.1', 1)
    const before = await connections()
    expect(await limit.consume({ key: 'a' })).toMatchObject({ reason: 'store-error' })
    await eventually(connections, (count) => count > before)
    await admin.replicaof('NO', 'ONE')
    const decision = await eventually(
      () => limit.consume({ key: 'a' }),
      ({ degraded }) => !degraded,
    )
    expect(decision).toMatchObject({ allowed: true, remaining: 1 })
  })
})

describe('a server whose clock was set forward', () => {
  test('is asked once more inside the budget', async () => {
    const client = functionalClient()
    const store = open(client)
    const limit = limiter(store)
    await limit.consume({ key: 'a' })
    // To the store, a server a day behind now is one whose clock jumps a day ahead at the next reply.
    const clock = jest.spyOn(performance, 'now').mockImplementation(() => -86_400_000)
    await limit.peek({ key: 'b' })
    clock.mockRestore()
    expect(await limit.consume({ key: 'a' })).toMatchObject({ allowed: true, remaining: 1, degraded: false })
  })
})

describe('close', () => {
  test('is idempotent, ends only our own connection, and later calls fail with a code B111', async () => {
    const client = functionalClient()
    const store = open(client)
    await limiter(store).consume({ key: 'a' })
    await store.close()
    await store.close()
    await expect(store.consume([], { timeoutMs: 100 })).rejects.toMatchObject({ code: 'SLUICE_CLOSED' })
    expect(await client.ping()).toBe('PONG')
  })

  test('leaves a shared client as it was', async () => {
    const client = functionalClient()
    const store = open(client, { duplicate: false })
    expect(await limiter(store).consume({ key: 'a' })).toMatchObject({ allowed: true })
    await store.close()
    expect(await client.ping()).toBe('PONG')
    expect(['ready', 'close', 'end'].map((event) => client.listenerCount(event))).toEqual([0, 0, 0])
  })

  test('with calls in flight rejects them and nothing else', async () => {
    const client = functionalClient()
    const store = open(client)
    const limit = limiter(store)
    await limit.peek({ key: 'a' })
    const calls = Array.from({ length: 50 }, () => limit.consume({ key: 'a' }))
    await store.close()
    const decisions = await Promise.all(calls)
    expect(decisions.filter(({ degraded }) => degraded).length).toBeGreaterThan(0)
    expect(decisions.filter(({ allowed }) => allowed).length).toBeLessThanOrEqual(3)
  })
})
