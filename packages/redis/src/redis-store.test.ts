import {
  type Algorithm,
  algorithmNames,
  type Decision,
  Limiter,
  type LimiterOptions,
  type Policy,
  SluiceError,
} from '@sluice/core'
import { Redis } from 'ioredis'
import { functionalClient, type RedisServer, startRedis } from '../test/redis.js'
import { RedisStore, type RedisStoreOptions } from './redis-store.js'

const closing: (() => Promise<unknown> | unknown)[] = []

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

function open(client: Redis, options?: RedisStoreOptions): RedisStore {
  closing.push(() => client.disconnect())
  client.on('error', () => {})
  const store = new RedisStore(client, options)
  closing.push(() => store.close())
  return store
}

async function privateServer(): Promise<RedisServer> {
  const server = await startRedis()
  closing.push(() => server.stop())
  return server
}

function clientOf({ url }: RedisServer): Redis {
  return new Redis(url, { disconnectTimeout: 50 })
}

function limiter(store: RedisStore, options: Partial<LimiterOptions & Policy> = {}): Limiter {
  return new Limiter({
    store,
    name: 'test',
    limit: 3,
    window: '1h',
    timeoutMs: 5000,
    onStoreError: 'deny',
    ...options,
  })
}

function codeOf(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    if (error instanceof SluiceError) return `${error.code} ${error.message}`
  }
  return 'nothing was thrown'
}

describe('construction', () => {
  test.each([
    ['nothing', undefined],
    ['a URL', 'redis://127.0.0.1:6379'],
    ['a client of another library', { sendCommand: () => {}, connect: () => {} }],
    ['a Cluster', { isCluster: true, status: 'ready', duplicate: () => {}, callBuffer: () => {} }],
  ])('refuses %s as its client', (_, client) => {
    expect(codeOf(() => new RedisStore(client as never))).toMatch(
      /^SLUICE_BAD_CLIENT .*Expected an ioredis client/,
    )
  })

  test.each([
    [{ prefix: '' }, 'SLUICE_BAD_OPTION', 'prefix'],
    [{ prefix: '{rl}' }, 'SLUICE_BAD_OPTION', 'prefix'],
    [{ prefix: 'x'.repeat(65) }, 'SLUICE_BAD_OPTION', 'prefix'],
    [{ prefix: 7 }, 'SLUICE_BAD_OPTION', 'prefix'],
    [{ duplicate: 'yes' }, 'SLUICE_BAD_OPTION', 'duplicate'],
    [{ prefixx: 'a' }, 'SLUICE_UNKNOWN_OPTION', 'prefixx'],
  ])('refuses the options %j', (options, code, option) => {
    const client = functionalClient({ lazyConnect: true })
    const text = codeOf(() => new RedisStore(client, options as RedisStoreOptions))
    expect(text).toContain(code)
    expect(text).toContain(`\`${option}\``)
  })
})

describe('keys', () => {
  test('are prefix, version, key in braces, limiter, policy, and algorithm with its window', async () => {
    const client = functionalClient()
    const store = open(client, { prefix: 'app' })
    await new Limiter({ store, name: 'login', limit: 1, window: '15m', timeoutMs: 5000 }).consume({
      key: 'ip:::1}{',
    })
    const keys = await client
      .keys('test:*')
      .then((all) => all.map((key) => key.replace(/^test:[0-9a-f-]+:/, '')))
    expect(keys).toContain('app:1:{ip:::1%7D%7B}:login:login:sc900000')
  })

  test('carry the keyPrefix of the client once, in every call B97', async () => {
    const client = functionalClient()
    const store = open(client)
    const limit = limiter(store, { algorithm: 'fixed-window' })
    await limit.consume({ key: 'a' })
    await limit.peek({ key: 'a' })
    expect(await client.exists('sluice:1:{a}:test:test:fw3600000')).toBe(1)
  })

  test.each([
    ['fixed-window', '1h', 3_601_000],
    ['sliding-window-counter', '1h', 7_201_000],
    ['token-bucket', '1h', 1_201_000],
    ['gcra', '1h', 1_201_000],
    ['gcra', '1ms', 1001],
    ['fixed-window', '400d', 34_560_001_000],
  ] as const)('of %s with a window of %s expire in time B107', async (algorithm, window, atMostMs) => {
    const client = functionalClient()
    const limit = limiter(open(client), { algorithm, window })
    await limit.consume({ key: 'a' })
    const [key] = (await client.keys(`${client.options.keyPrefix}*`)) as [string]
    const ttl = await new Promise<number>((resolve) => {
      const plain = functionalClient({ keyPrefix: '' })
      closing.push(() => plain.disconnect())
      resolve(plain.pttl(key))
    })
    expect(ttl).toBeGreaterThan(0)
    expect(ttl).toBeLessThanOrEqual(atMostMs)
  })
})

describe('decisions', () => {
  test('of several policies are one command, all or nothing B87', async () => {
    const server = await privateServer()
    const watcher = clientOf(server)
    closing.push(() => watcher.disconnect())
    const store = open(clientOf(server))
    const limit = new Limiter({
      store,
      policies: [
        { name: 'wide', limit: 100, window: '1h', algorithm: 'fixed-window' },
        { name: 'narrow', limit: 2, window: '1h', algorithm: 'gcra' },
      ],
      timeoutMs: 5000,
    })
    await limit.consume({ key: 'a' })
    await limit.consume({ key: 'a' })
    const before = await watcher.info('commandstats')
    const denied = await limit.consume({ key: 'a' })
    const after = await watcher.info('commandstats')
    const calls = (info: string, command: string): number =>
      Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(info)?.[1] ?? 0)
    expect(calls(after, 'evalsha') - calls(before, 'evalsha')).toBe(1)
    expect(calls(after, 'set') - calls(before, 'set')).toBe(0)
    expect(calls(after, 'time') - calls(before, 'time')).toBe(1)
    expect(denied).toMatchObject({ allowed: false, reason: 'quota', source: 'store' })
    expect(denied.policies.map(({ name, allowed, remaining }) => [name, allowed, remaining])).toEqual([
      ['wide', true, 98],
      ['narrow', false, 0],
    ])
  })

  test('survive a flush of the script cache in mid-load, each by one more call B91', async () => {
    const server = await privateServer()
    const admin = clientOf(server)
    closing.push(() => admin.disconnect())
    const limit = limiter(open(clientOf(server)), { limit: 150 })
    await limit.peek({ key: 'a' })
    const calls: Promise<Decision>[] = []
    for (let i = 0; i < 200; i += 1) {
      if (i % 50 === 0) await admin.script('FLUSH')
      calls.push(limit.consume({ key: 'a' }))
    }
    const decisions = await Promise.all(calls)
    expect(decisions.filter(({ degraded }) => degraded)).toEqual([])
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(150)
  })

  test('peek charges nothing and answers as consume would', async () => {
    const client = functionalClient()
    const limit = limiter(open(client))
    const peeked = await limit.peek({ key: 'a' })
    const consumed = await limit.consume({ key: 'a' })
    expect(peeked).toMatchObject({ allowed: true, remaining: 2 })
    expect(consumed).toMatchObject({ allowed: true, remaining: 2 })
  })
})

describe('refund, reset and block', () => {
  test.each(algorithmNames.map((name) => [name] as const))('work under %s', async (algorithm) => {
    const client = functionalClient()
    const limit = limiter(open(client), {
      algorithm,
      limit: 10,
      window: '1h',
      blocks: true,
      ...longQueue(algorithm),
    })
    const remaining = async () => (await limit.peek({ key: 'a', cost: 0 })).remaining
    const whole = await remaining()
    const first = await limit.consume({ key: 'a', cost: 2 })
    const second = await limit.consume({ key: 'a', cost: 3 })
    await limit.refund(second)
    await limit.refund(second)
    expect(await remaining()).toBe(whole - 2)
    await limit.refund(first, 1)
    expect(await remaining()).toBe(whole - 1)
    await limit.reset('a')
    expect(await remaining()).toBe(whole)
    await limit.block('a', '1m')
    const blocked = await limit.consume({ key: 'a' })
    expect(blocked).toMatchObject({ allowed: false, reason: 'blocked', source: 'store' })
    expect(blocked.retryAfterMs).toBeGreaterThan(50_000)
    expect(blocked.retryAfterMs).toBeLessThanOrEqual(60_000)
    const keys = await client.keys(`${client.options.keyPrefix}*`)
    expect(keys.map((key) => key.replace(`${client.options.keyPrefix}`, ''))).toEqual([
      'sluice:1:{a}:test:-:bk',
    ])
    await limit.unblock('a')
    expect(await limit.consume({ key: 'a' })).toMatchObject({ allowed: true })
  })

  test('fail with a code when the server is away B119', async () => {
    const server = await privateServer()
    const limit = limiter(open(clientOf(server)), { blocks: true })
    const decision = await limit.consume({ key: 'a' })
    await server.stop()
    await expect(limit.refund(decision)).rejects.toMatchObject({ code: 'SLUICE_STORE_FAILED' })
    await expect(limit.reset('a')).rejects.toMatchObject({ code: 'SLUICE_STORE_FAILED' })
    await expect(limit.block('a', '1s')).rejects.toMatchObject({ code: 'SLUICE_STORE_FAILED' })
  })
})

/** A leaky bucket of ten an hour would have no places by default; refunds of its last place are enough here. */
function longQueue(algorithm: Algorithm): Partial<Policy> {
  return algorithm === 'leaky-bucket' ? { queue: 9 } : {}
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
    const again = await startRedis({ port: server.port })
    closing.push(() => again.stop())
    const decision = await eventually(
      () => limit.consume({ key: 'a' }),
      ({ degraded }) => !degraded,
    )
    expect(decision).toMatchObject({ allowed: true, remaining: 2 })
  })

  test('and restarts empty is used again without a restart of ours', async () => {
    const server = await privateServer()
    const limit = limiter(open(clientOf(server)))
    expect(await limit.consume({ key: 'a' })).toMatchObject({ allowed: true, remaining: 2 })
    await server.stop()
    expect(await limit.consume({ key: 'a' })).toMatchObject({ allowed: false, reason: 'store-error' })
    const again = await startRedis({ port: server.port })
    closing.push(() => again.stop())
    const decision = await eventually(
      () => limit.consume({ key: 'a' }),
      ({ degraded }) => !degraded,
    )
    expect(decision).toMatchObject({ allowed: true, remaining: 2 })
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

  test('that has ended is a store that failed, at once', async () => {
    const client = functionalClient()
    await client.quit()
    const limit = limiter(open(client, { duplicate: false }))
    expect(await limit.consume({ key: 'a' })).toMatchObject({ reason: 'store-error' })
  })

  test('whose first question fails is asked again', async () => {
    const server = await privateServer()
    const admin = clientOf(server)
    closing.push(() => admin.disconnect())
    await admin.call('ACL', 'SETUSER', 'limited', 'on', '>secret', '~*', '+@all', '-time')
    const client = new Redis(server.url, { username: 'limited', password: 'secret', disconnectTimeout: 50 })
    const limit = limiter(open(client))
    expect(await limit.consume({ key: 'a' })).toMatchObject({ reason: 'store-error' })
    await admin.call('ACL', 'SETUSER', 'limited', '+time')
    expect(await limit.consume({ key: 'a' })).toMatchObject({ allowed: true })
  })

  test('that may not read a log is a store that failed, not an empty log', async () => {
    const server = await privateServer()
    const admin = clientOf(server)
    closing.push(() => admin.disconnect())
    await admin.call('ACL', 'SETUSER', 'limited', 'on', '>secret', '~*', '+@all', '-llen')
    const client = new Redis(server.url, { username: 'limited', password: 'secret', disconnectTimeout: 50 })
    const limit = limiter(open(client), { algorithm: 'sliding-window-log' })
    expect(await limit.consume({ key: 'a' })).toMatchObject({ reason: 'store-error' })
  })

  test('of a master that becomes a replica, with its connection left open, finds the new master B99', async () => {
    const old = await privateServer()
    const limit = limiter(open(clientOf(old)))
    expect(await limit.consume({ key: 'a' })).toMatchObject({ remaining: 2 })
    const admin = clientOf(old)
    closing.push(() => admin.disconnect())
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
    expect(client.listenerCount('ready') + client.listenerCount('close')).toBe(0)
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

/** Asks again until the answer is as wanted; the test's own time limit ends it. */
async function eventually<T>(ask: () => Promise<T>, wanted: (answer: T) => boolean): Promise<T> {
  for (;;) {
    const answer = await ask()
    if (wanted(answer)) return answer
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
