import { Redis } from 'ioredis'
import { startSentinel } from '../../../scripts/servers/sentinel.cjs'
import { startProxy } from '../../../scripts/servers/tcp-proxy.cjs'
import type { RedisStore } from '../src/index.js'
import {
  adminOf,
  afterwards,
  check,
  clientOf,
  eventually,
  open,
  policyOf,
  privateServer,
  tryOne,
} from './harness.js'
import type { RedisServer } from './redis.js'

const policy = policyOf(1_000_000)
const one = check('k', policy)

async function proxied(): Promise<{
  server: RedisServer
  proxy: Awaited<ReturnType<typeof startProxy>>
  store: RedisStore
}> {
  const server = await privateServer()
  const proxy = await startProxy(server.port)
  afterwards(() => proxy.stop())
  return { server, proxy, store: open(clientOf(proxy)) }
}

/** How many units of the key are charged, as the server knows. */
async function charged(server: RedisServer): Promise<number> {
  const raw = await adminOf(server).getBuffer('sluice:k')
  return raw ? raw.readUInt32LE(8) : 0
}

async function used(store: RedisStore): Promise<string> {
  const answer = await tryOne(store, one)
  return typeof answer === 'string' ? answer : 'granted'
}

const isGranted = (answer: string): boolean => answer === 'granted'

describe('a server', () => {
  test('that replies to a broken connection has charged once at most, and is not asked again B103', async () => {
    const { server, proxy, store } = await proxied()
    expect(await used(store)).toBe('granted')
    proxy.cutReplies({ to: /evalsha/i })
    const calls = 20
    const answers: string[] = []
    for (let i = 0; i < calls; i++) {
      answers.push(
        await eventually(
          () => used(store),
          (answer) => !answer.includes('not connected'),
        ),
      )
    }
    expect(answers.filter(isGranted)).toEqual([])
    proxy.pass()
    await eventually(() => used(store), isGranted)
    const count = await charged(server)
    expect(count).toBeGreaterThan(2)
    expect(count).toBeLessThanOrEqual(calls + 2)
  })

  test('that comes back charges nothing of 50,000 calls that were made meanwhile B103', async () => {
    const { server, proxy, store } = await proxied()
    expect(await used(store)).toBe('granted')
    proxy.hold()
    const timeoutMs = 100
    const held = Array.from({ length: 50_000 }, () => tryOne(store, one, timeoutMs))
    await new Promise((resolve) => setTimeout(resolve, 2 * timeoutMs))
    proxy.pass()
    const answers = await Promise.all(held)
    expect(answers.filter((answer) => typeof answer !== 'string')).toEqual([])
    expect(await charged(server)).toBe(1)
    await eventually(() => used(store), isGranted)
  })

  test('that holds every connection, the first ones too, is left for a new connection', async () => {
    const server = await privateServer()
    const proxy = await startProxy(server.port)
    afterwards(() => proxy.stop())
    proxy.hold()
    const store = open(clientOf(proxy))
    const answer = await eventually(
      () => used(store),
      (text) => text.includes('not connected'),
    )
    expect(answer).toContain('SLUICE_STORE_FAILED')
    proxy.pass()
    await eventually(() => used(store), isGranted)
  })

  test('that hangs is left, and asked again once it answers', async () => {
    const { server, store } = await proxied()
    expect(await used(store)).toBe('granted')
    process.kill(server.pid, 'SIGSTOP')
    const silent = await used(store)
    process.kill(server.pid, 'SIGCONT')
    expect(silent).toMatch(/Nothing has come back.*SLUICE_STORE_FAILED/)
    await eventually(() => used(store), isGranted)
  })

  test('that wants another password fails each call with its refusal, until the password is right', async () => {
    const server = await privateServer({ args: ['--requirepass', 'right'] })
    const store = open(clientOf(server, { password: 'wrong' }))
    const failed = await store.consume([one], { timeoutMs: 1000 }).catch((error) => error)
    expect(failed).toMatchObject({
      code: 'SLUICE_STORE_FAILED',
      cause: { message: expect.stringContaining('WRONGPASS') },
    })
    const admin = clientOf(server, { password: 'right' })
    afterwards(() => admin.disconnect())
    await admin.config('SET', 'requirepass', 'wrong')
    await eventually(() => used(store), isGranted)
  })

  test.each([
    [
      'is full',
      'OOM',
      (admin: Redis) => admin.config('SET', 'maxmemory', 1),
      (admin: Redis) => admin.config('SET', 'maxmemory', 0),
    ],
    [
      'became a replica',
      'READONLY',
      (admin: Redis) => admin.replicaof('127.0.0.1', 1),
      (admin: Redis) => admin.replicaof('NO', 'ONE'),
    ],
    [
      'lost its master',
      'MASTERDOWN',
      async (admin: Redis) => {
        await admin.config('SET', 'replica-serve-stale-data', 'no')
        await admin.replicaof('127.0.0.1', 1)
      },
      (admin: Redis) => admin.replicaof('NO', 'ONE'),
    ],
    [
      'takes back a right',
      'NOPERM',
      (admin: Redis) => admin.call('ACL', 'SETUSER', 'default', '-evalsha', '-eval'),
      (admin: Redis) => admin.call('ACL', 'SETUSER', 'default', '+@all'),
    ],
  ])('that %s fails a call with %s as its cause, and is used again after', async (_, word, harm, mend) => {
    const server = await privateServer()
    const admin = adminOf(server)
    const store = open(clientOf(server))
    expect(await used(store)).toBe('granted')
    await harm(admin)
    const failed = await store.consume([one], { timeoutMs: 1000 }).catch((error) => error)
    expect(failed).toMatchObject({
      code: 'SLUICE_STORE_FAILED',
      cause: { message: expect.stringMatching(`^${word} `) },
    })
    await mend(admin)
    await eventually(() => used(store), isGranted)
  })

  test('that is loading its data refuses with LOADING, and is used again once it has them', async () => {
    const server = await privateServer({ args: ['--enable-debug-command', 'yes'] })
    const store = open(clientOf(server))
    expect(await used(store)).toBe('granted')
    const admin = adminOf(server)
    await admin.call('DEBUG', 'POPULATE', 2000)
    await admin.config('SET', 'key-load-delay', 500)
    await admin.config('SET', 'loading-process-events-interval-bytes', 1024)
    const reloaded = admin.call('DEBUG', 'RELOAD')
    const failure = await eventually(
      () => used(store),
      (answer) => !isGranted(answer),
    )
    expect(failure).toContain('LOADING')
    expect(await reloaded).toBe('OK')
    await eventually(() => used(store), isGranted)
  })

  test('that runs a long script refuses with BUSY, and is used again once it has ended', async () => {
    const server = await privateServer({ args: ['--busy-reply-threshold', '20'] })
    const store = open(clientOf(server))
    expect(await used(store)).toBe('granted')
    const [admin, other] = [adminOf(server), adminOf(server)]
    await other.ping()
    const running = admin.eval('while true do end', 0).catch((error: Error) => error.message)
    const failure = await eventually(
      () => used(store),
      (answer) => !isGranted(answer),
    )
    expect(failure).toContain('BUSY')
    await other.script('KILL')
    expect(await running).toContain('killed')
    await eventually(() => used(store), isGranted)
  })

  test('with a full memory that drops a key counts it afresh, without an error B109', async () => {
    const server = await privateServer({ args: ['--maxmemory', '3mb', '--maxmemory-policy', 'volatile-lru'] })
    const store = open(clientOf(server))
    const small = check('k', policyOf(1))
    expect(await tryOne(store, small)).toMatchObject({ allowed: true })
    expect(await tryOne(store, small)).toMatchObject({ allowed: false })
    const admin = adminOf(server)
    for (let i = 0; (await admin.exists('sluice:k')) === 1; i++) {
      const keys = Array.from({ length: 500 }, (_, n) => admin.set(`${i}-${n}`, 'x'.repeat(1000), 'EX', 1000))
      await Promise.all(keys)
    }
    expect(await tryOne(store, small)).toMatchObject({ allowed: true })
  })
})

describe('behind Sentinels', () => {
  test('the master is asked whatever role the client wants, and another one after a failover B99', async () => {
    const servers = await startSentinel()
    afterwards(() => servers.stop())
    const { name, sentinels } = servers
    const store = open(new Redis({ sentinels, name, role: 'slave' }))
    expect(await used(store)).toBe('granted')
    const old = await servers.masterPort()
    await servers.failover()
    await eventually(() => used(store), isGranted)
    const master = await servers.masterPort()
    expect(master).not.toBe(old)
    const lost = servers.servers.find(({ port }) => port === master) as RedisServer
    process.kill(lost.pid, 'SIGKILL')
    expect(
      await eventually(
        () => used(store),
        (answer) => !isGranted(answer),
      ),
    ).toContain('SLUICE_STORE_FAILED')
    await eventually(() => used(store), isGranted)
  })

  test('all of which are down calls fail at once, and succeed once they are up B111', async () => {
    const away = { host: '127.0.0.1', port: 1 }
    const store = open(new Redis({ sentinels: [away], name: 'main' }))
    expect(await tryOne(store, one, 20_000)).toContain('SLUICE_STORE_FAILED')
    const servers = await startSentinel({ sentinels: 1 })
    afterwards(() => servers.stop())
    const proxy = await startProxy((servers.sentinels[0] as { port: number }).port)
    afterwards(() => proxy.stop())
    proxy.refuse()
    const { port } = proxy
    const waiting = open(new Redis({ sentinels: [{ host: '127.0.0.1', port }], name: servers.name }))
    expect(await tryOne(waiting, one, 20_000)).toContain('SLUICE_STORE_FAILED')
    proxy.pass()
    await eventually(() => used(waiting), isGranted)
  })

  test('a failover that is announced while a Sentinel is asked does not end the connection', async () => {
    const servers = await startSentinel()
    afterwards(() => servers.stop())
    const { name, sentinels } = servers
    const client = new Redis({ sentinels, name, lazyConnect: true })
    const duplicate = jest.spyOn(client, 'duplicate')
    const store = open(client)
    expect(await used(store)).toBe('granted')
    const own = duplicate.mock.results[0]?.value as unknown as NodeJS.EventEmitter & {
      readonly connector: { disconnect(): void }
      disconnect(reconnect: boolean): void
    }
    const ended = new Promise((resolve) => own.once('end', resolve))
    own.once('connecting', () => own.connector.disconnect())
    own.disconnect(true)
    await ended
    await eventually(() => used(store), isGranted)
  })
})
