import { Cluster, type ClusterOptions, Redis } from 'ioredis'
import { startCluster } from '../../../scripts/servers/cluster.cjs'
import { startSentinel } from '../../../scripts/servers/sentinel.cjs'
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
} from '../test/harness.js'
import { startRedis } from '../test/redis.js'
import type { RedisStore } from './redis-store.js'

/** A store that keeps what it warns of. */
function watched(client: Redis | Cluster, lines: string[] = []): [RedisStore, string[]] {
  return [open(client, { logger: { warn: (line) => lines.push(line) } }), lines]
}

async function limitedUser(
  admin: Redis,
  ...rules: string[]
): Promise<{ username: string; password: string }> {
  const user = { username: 'limited', password: 'secret' }
  await admin.call('ACL', 'SETUSER', user.username, 'on', `>${user.password}`, '~*', '+@all', ...rules)
  return user
}

describe('ready', () => {
  test('resolves on a sound server, warns of nothing and leaves no key for longer than a second', async () => {
    const server = await privateServer()
    const [store, lines] = watched(clientOf(server))
    await store.ready()
    expect(lines).toEqual([])
    const admin = adminOf(server)
    const ttls = await Promise.all((await admin.keys('*')).map((key) => admin.pttl(key)))
    expect(Math.max(0, ...ttls)).toBeLessThanOrEqual(1001)
  })

  test.each([
    ['allkeys-lru', true],
    ['volatile-lru', true],
    ['volatile-ttl', true],
    ['noeviction', false],
  ])('on a server with a full memory and %s: warns, once: %s B109', async (policy, warns) => {
    const server = await privateServer({ args: ['--maxmemory', '100mb', '--maxmemory-policy', policy] })
    const [store, lines] = watched(clientOf(server))
    await store.ready()
    await store.ready()
    expect(lines).toHaveLength(warns ? 1 : 0)
    if (warns) expect(lines[0]).toMatch(/^sluice: .*maxmemory-policy .*\(SLUICE_REDIS_EVICTION\)$/)
  })

  test('does not mind an eviction policy where memory has no limit', async () => {
    const server = await privateServer({ args: ['--maxmemory-policy', 'allkeys-lru'] })
    const [store, lines] = watched(clientOf(server))
    await store.ready()
    expect(lines).toEqual([])
  })

  test('warns of a server that tells nothing of itself, and checks the script all the same', async () => {
    const server = await privateServer()
    const user = await limitedUser(adminOf(server), '-info')
    const [store, lines] = watched(clientOf(server, { ...user, enableReadyCheck: false }))
    await store.ready()
    expect(lines).toEqual([expect.stringContaining('(SLUICE_REDIS_UNCHECKED)')])
  })

  test.each([['-evalsha'], ['-psetex'], ['-time'], ['-@scripting']])(
    'rejects when the user may not: %s',
    async (rule) => {
      const server = await privateServer()
      const user = await limitedUser(adminOf(server), rule)
      const [store] = watched(clientOf(server, user))
      await expect(store.ready()).rejects.toMatchObject({ code: 'SLUICE_REDIS_SCRIPTS' })
    },
  )

  test('rejects on a replica, told by its role or by its refusal', async () => {
    const server = await privateServer()
    const admin = adminOf(server)
    const user = await limitedUser(admin, '-info')
    await admin.replicaof('127.0.0.1', 1)
    const [store] = watched(clientOf(server))
    await expect(store.ready()).rejects.toMatchObject({ code: 'SLUICE_REDIS_REPLICA' })
    const [other] = watched(clientOf(server, { ...user, enableReadyCheck: false }))
    await expect(other.ready()).rejects.toMatchObject({ code: 'SLUICE_REDIS_REPLICA' })
  })

  test('rejects on a version before 6.2', async () => {
    const server = await privateServer()
    const client = clientOf(server)
    const store = open(client, { duplicate: false })
    await client.ping()
    jest.spyOn(client, 'info').mockResolvedValue('redis_version:6.0.16\r\nrole:master\r\n')
    await expect(store.ready()).rejects.toMatchObject({
      code: 'SLUICE_REDIS_VERSION',
      message: expect.stringContaining('6.0.16'),
    })
  })

  test('rejects in time when the server is down, and the store works once it is up', async () => {
    const server = await privateServer()
    await server.stop()
    const [store] = watched(clientOf(server))
    await expect(store.ready({ timeoutMs: 50 })).rejects.toMatchObject({
      code: 'SLUICE_STORE_TIMEOUT',
      message: expect.stringContaining('ECONNREFUSED'),
      cause: expect.objectContaining({ code: 'ECONNREFUSED' }),
    })
    const ready = store.ready()
    const again = await startRedis({ port: server.port })
    afterwards(() => again.stop())
    await ready
    expect(await tryOne(store, check('k', policyOf(1)))).toMatchObject({ granted: 1 })
  })

  test.each([[0], [1.5], [600_001], ['1s']])('refuses a timeoutMs of %p', async (timeoutMs) => {
    const server = await privateServer()
    const [store] = watched(clientOf(server))
    await expect(store.ready({ timeoutMs: timeoutMs as number })).rejects.toMatchObject({
      code: 'SLUICE_BAD_OPTION',
    })
  })

  test('rejects once the store is closed', async () => {
    const [store] = watched(clientOf(await privateServer()))
    await store.close()
    await expect(store.ready()).rejects.toMatchObject({ code: 'SLUICE_CLOSED' })
  })

  test('checks every master of a Cluster, and refuses a client of one node', async () => {
    const cluster = await startCluster({ replicas: 0, args: ['--maxmemory', '100mb'] })
    afterwards(() => cluster.stop())
    const [first] = cluster.nodes as [(typeof cluster.nodes)[number]]
    await adminOf(first).config('SET', 'maxmemory-policy', 'volatile-lru')
    const [store, lines] = watched(new Cluster(cluster.startupNodes))
    await store.ready()
    expect(lines).toEqual([expect.stringContaining(`127.0.0.1:${first.port}`)])
    const used = await Promise.all(
      cluster.nodes.map(async (node) =>
        (await adminOf(node).info('commandstats')).includes('cmdstat_psetex:'),
      ),
    )
    expect(used).toEqual([true, true, true])
    const [inOneSlot] = watched(new Cluster(cluster.startupNodes, { keyPrefix: '{app}:' }))
    await inOneSlot.ready()
    const [single] = watched(clientOf(first))
    await expect(single.ready()).rejects.toMatchObject({ code: 'SLUICE_REDIS_CLUSTER' })
  })

  test('names the server that Sentinels led to', async () => {
    const { sentinels, servers, name, stop } = await startSentinel()
    afterwards(stop)
    const addresses = sentinels.map(({ port }) => ({ host: '127.0.0.1', port }))
    const client = new Redis({ sentinels: addresses, name, role: 'slave' })
    const store = open(client, { duplicate: false })
    await expect(store.ready()).rejects.toMatchObject({
      code: 'SLUICE_REDIS_REPLICA',
      message: expect.stringContaining(`127.0.0.1:${servers[1]?.port} is a replica`),
    })
  })

  test.each<[string, string, ClusterOptions, string]>([
    ['a name that is unknown', 'redis', { dnsLookup: (_, done) => done(new Error('who?'), '') }, 'who?'],
    ['a server that is none', '127.0.0.1', {}, 'cluster support disabled'],
  ])('tells why a Cluster cannot be connected: %s', async (_, host, options, why) => {
    const { port } = await privateServer()
    const [store] = watched(new Cluster([{ host, port }], options))
    const ready = store.ready({ timeoutMs: 300 })
    await expect(ready).rejects.toThrow(why)
    await expect(ready).rejects.toMatchObject({ code: 'SLUICE_STORE_TIMEOUT' })
  })

  test('rejects while the Cluster has slots that nobody serves', async () => {
    const cluster = await startCluster({ replicas: 0 })
    afterwards(() => cluster.stop())
    const [store] = watched(new Cluster(cluster.startupNodes))
    await store.ready()
    const owner = await cluster.masterOf(0)
    for (const node of cluster.nodes) await adminOf(node).call('CLUSTER', 'DELSLOTS', 0)
    const code = await eventually(
      () =>
        store.ready().then(
          () => undefined,
          (error) => error.code,
        ),
      (answer) => answer !== undefined,
    )
    expect(code).toBe('SLUICE_REDIS_CLUSTER')
    await adminOf(owner).call('CLUSTER', 'ADDSLOTS', 0)
    await eventually(
      () =>
        store.ready().then(
          () => true,
          () => false,
        ),
      (answer) => answer,
    )
  })
})
