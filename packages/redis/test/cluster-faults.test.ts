import { randomUUID } from 'node:crypto'
import type { Verdict } from '@sluice/core'
import { Cluster } from 'ioredis'
import { startCluster } from '../../../scripts/servers/cluster.cjs'
import { startProxy } from '../../../scripts/servers/tcp-proxy.cjs'
import { RedisStore } from '../src/index.js'
import { adminOf, afterwards, check, eventually, limiter, open, policyOf, tryOne } from './harness.js'
import { startRedis } from './redis.js'

const options = { timeoutMs: 5000 }
const policy = policyOf(10)

type Servers = Awaited<ReturnType<typeof startCluster>>

async function start(settings?: Parameters<typeof startCluster>[0]): Promise<Servers> {
  const cluster = await startCluster(settings)
  afterwards(() => cluster.stop())
  return cluster
}

function clientOf(cluster: Servers): Cluster {
  return new Cluster(cluster.startupNodes)
}

async function remaining(store: RedisStore, key: string): Promise<number> {
  const [verdict] = await store.peek([check(key, policy, 0)], options)
  return (verdict as Verdict).remaining
}

const decided = (answer: Verdict | string): boolean => typeof answer !== 'string'

describe('a Cluster', () => {
  test('that lost a master fails its keys, serves the others, and all again once a replica has taken over', async () => {
    const cluster = await start()
    // So that the others go on without it.
    for (const node of cluster.nodes) await adminOf(node).config('SET', 'cluster-require-full-coverage', 'no')
    const store = open(clientOf(cluster), { prefix: 'p' })
    const lost = await cluster.masterOf('{a}')
    const keys = ['{a}', '{b}', '{c}', '{d}']
    const owners = await Promise.all(keys.map((key) => cluster.masterOf(key)))
    const elsewhere = keys[owners.findIndex(({ port }) => port !== lost.port)] as string
    for (const key of [elsewhere, '{a}'])
      expect(await tryOne(store, check(key, policy))).toMatchObject({ granted: 1 })
    process.kill(lost.pid, 'SIGKILL')
    const failure = await eventually(
      () => tryOne(store, check('{a}', policy)),
      (answer) => !decided(answer),
    )
    expect(failure).toContain('SLUICE_STORE_FAILED')
    expect(await tryOne(store, check(elsewhere, policy))).toMatchObject({ granted: 1 })
    await eventually(() => tryOne(store, check('{a}', policy)), decided)
  })

  test('of which one node hangs denies in time what another denies, and keeps no charge', async () => {
    const cluster = await start({ replicas: 0 })
    const store = open(clientOf(cluster), { prefix: 'p' })
    await store.consume([check('{a}', policy, 10)], options)
    await store.consume([check('{b}', policy)], options)
    const hung = await cluster.masterOf('{b}')
    process.kill(hung.pid, 'SIGSTOP')
    const verdicts = await store.consume([check('{a}', policy), check('{b}', policy)], { timeoutMs: 200 })
    process.kill(hung.pid, 'SIGCONT')
    expect(verdicts).toMatchObject([{ allowed: false }, { failed: true, granted: 0 }])
    await eventually(
      () => remaining(store, '{b}').catch(() => undefined),
      (left) => left === 9,
    )
  })

  test('that replies to a broken connection has charged once, and is not asked again B103', async () => {
    const cluster = await start({ replicas: 0 })
    const node = await cluster.masterOf('{a}')
    const proxy = await startProxy(node.port)
    afterwards(() => proxy.stop())
    const natMap = { [`127.0.0.1:${node.port}`]: { host: '127.0.0.1', port: proxy.port } }
    const store = open(new Cluster(cluster.startupNodes, { natMap }), { prefix: 'p' })
    expect(await tryOne(store, check('{a}', policy))).toMatchObject({ remaining: 9 })
    proxy.cutReplies({ to: /evalsha/i })
    expect(await tryOne(store, check('{a}', policy))).toContain('SLUICE_STORE_FAILED')
    proxy.pass()
    const left = await eventually(
      () => remaining(store, '{a}').catch(() => undefined),
      (answer) => answer !== undefined,
    )
    expect(left).toBe(8)
  })

  test('that forgets the script is sent it again B91', async () => {
    const cluster = await start({ replicas: 0 })
    const limit = limiter(open(clientOf(cluster)), { limit: 50 })
    const keys = ['a', 'b', 'c', 'd', 'e']
    const round = (): Promise<boolean[]> =>
      Promise.all(keys.map(async (key) => (await limit.consume({ key })).degraded))
    await round()
    const calls = []
    for (let i = 0; i < 40; i++) {
      if (i % 10 === 0) for (const node of cluster.nodes) await adminOf(node).script('FLUSH')
      calls.push(round())
    }
    expect((await Promise.all(calls)).flat()).not.toContain(true)
    for (const key of keys) expect((await limit.peek({ key, cost: 0 })).remaining).toBe(9)
  })

  test('that has not all slots rejects at once, and is used once it has', async () => {
    const cluster = await start({ replicas: 0 })
    const store = open(clientOf(cluster), { prefix: 'p' })
    expect(await tryOne(store, check('{a}', policy))).toMatchObject({ granted: 1 })
    const owner = await cluster.masterOf('{b}')
    const slot = (await adminOf(owner).call('CLUSTER', 'KEYSLOT', '{b}')) as number
    for (const node of cluster.nodes) await adminOf(node).call('CLUSTER', 'DELSLOTS', slot)
    const failure = await eventually(
      () => tryOne(store, check('{b}', policy)),
      (answer) => !decided(answer),
    )
    expect(failure).toMatch(/CLUSTERDOWN|MOVED/)
    await adminOf(owner).call('CLUSTER', 'ADDSLOTS', slot)
    await eventually(() => tryOne(store, check('{b}', policy)), decided)
  })

  test('that is down at the start is a store that failed, at once, until it is up B111', async () => {
    const args = ['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1']
    const server = await startRedis({ args })
    await server.stop()
    const store = open(new Cluster([{ host: '127.0.0.1', port: server.port }]))
    const answer = await tryOne(store, check('k', policy))
    expect(answer).toContain('SLUICE_STORE_FAILED')
    const again = await startRedis({ port: server.port, args })
    afterwards(() => again.stop())
    const admin = adminOf(again)
    await admin.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383)
    await eventually(() => tryOne(store, check('k', policy)), decided)
  })
})

describe('close', () => {
  test.each([
    ['before the first connection', 0],
    ['with calls in flight', 50],
  ])('of a store on a Cluster %s rejects calls and leaves the given client open B111', async (_, calls) => {
    const cluster = await start({ replicas: 0 })
    const client = clientOf(cluster)
    const store = open(client)
    if (calls > 0) await tryOne(store, check('k', policy))
    const answers = Array.from({ length: calls }, (_, i) => tryOne(store, check(`k${i}`, policy)))
    await store.close()
    await store.close()
    for (const answer of await Promise.all(answers)) {
      expect(decided(answer) || /SLUICE_(CLOSED|STORE_FAILED)/.test(answer as string)).toBe(true)
    }
    await expect(store.consume([check('k', policy)], options)).rejects.toMatchObject({
      code: 'SLUICE_CLOSED',
    })
    expect(await client.set(`mine:${randomUUID()}`, '1')).toBe('OK')
  })

  test('leaves a shared Cluster client as it was', async () => {
    const cluster = await start({ replicas: 0 })
    const client = clientOf(cluster)
    client.on('error', () => {})
    afterwards(() => client.disconnect())
    const listeners = () =>
      ['ready', 'close', 'end', 'error', '-node'].map((event) => client.listenerCount(event))
    await client.set('mine', '1')
    const before = listeners()
    const store = new RedisStore(client, { duplicate: false })
    expect(await tryOne(store, check('k', policy))).toMatchObject({ granted: 1 })
    await store.close()
    expect(listeners()).toEqual(before)
    expect(await client.set('mine', '1')).toBe('OK')
  })
})
