import { startCluster } from './cluster.cjs'
import { until } from './launch.cjs'
import { call } from './resp.cjs'

type Cluster = Awaited<ReturnType<typeof startCluster>>

let cluster: Cluster
let small: Cluster
beforeAll(async () => {
  const starting = [
    startCluster(),
    startCluster({ masters: 2, replicas: 0, args: ['--maxmemory', '7mb'] }),
  ] as const
  ;[cluster, small] = await Promise.all(starting)
})
afterAll(() => Promise.all([cluster?.stop(), small?.stop()]))

/** Another master than that of a slot, by its index. */
async function anotherThan(slot: number): Promise<number> {
  const owner = await cluster.masterOf(slot)
  return cluster.nodes.findIndex(({ master, port }) => master === undefined && port !== owner.port)
}

const slotOf = async (key: string) =>
  Number(await call(cluster.nodes[0]?.port ?? 0, 'CLUSTER', 'KEYSLOT', key))

it('serves keys on all masters, each with a replica', async () => {
  const served = new Set<number>()
  for (let i = 0; i < 30; i += 1) {
    const { port } = await cluster.masterOf(`key ${i}`)
    await call(port, 'SET', `key ${i}`, i)
    expect(await call(port, 'GET', `key ${i}`)).toBe(`${i}`)
    served.add(port)
  }
  expect([...served].sort()).toEqual(
    cluster.nodes
      .slice(0, 3)
      .map(({ port }) => port)
      .sort(),
  )
  expect(cluster.nodes.map(({ master }) => master)).toEqual([undefined, undefined, undefined, 0, 1, 2])
  for (const { port, master } of cluster.nodes.slice(3))
    expect(await call(port, 'INFO', 'replication')).toContain(
      `master_port:${cluster.nodes[Number(master)]?.port}`,
    )
})

it('holds a slot in the migrating state, with some of its keys moved, until the migration is finished', async () => {
  const slot = await slotOf('held')
  const [{ port }, to] = [await cluster.masterOf(slot), await anotherThan(slot)]
  const target = cluster.nodes[to]?.port ?? 0
  const keys = ['{held}ä', '{held}b', '{held}c', '{held}d']
  for (const key of keys) await call(port, 'SET', key, key)

  await cluster.beginMigration(slot, to)
  await expect(call(port, 'GET', '{held}none')).rejects.toThrow(`ASK ${slot} 127.0.0.1:${target}`)
  await expect(call(port, 'MGET', ...keys)).resolves.toEqual(keys)

  await cluster.moveKeys(slot, to, 2)
  await expect(call(port, 'MGET', ...keys)).rejects.toThrow('TRYAGAIN')
  expect((await cluster.masterOf(slot)).port).toBe(port)

  await cluster.finishMigration(slot, to)
  await expect(call(target, 'MGET', ...keys)).resolves.toEqual(keys)
  await expect(call(port, 'GET', keys[0] ?? '')).rejects.toThrow(`MOVED ${slot} 127.0.0.1:${target}`)
  expect((await cluster.masterOf('held')).port).toBe(target)
})

it('moves a slot with its keys', async () => {
  const slot = await slotOf('moved')
  await call((await cluster.masterOf(slot)).port, 'SET', 'moved', 'here')
  const to = await anotherThan(slot)
  await cluster.moveSlot(slot, to)
  expect(await cluster.masterOf('moved')).toBe(cluster.nodes[to])
  await expect(call(cluster.nodes[to]?.port ?? 0, 'GET', 'moved')).resolves.toBe('here')
})

it('has a replica promoted when its master is killed, and still moves slots', async () => {
  const slot = await slotOf('orphan')
  const dead = await cluster.masterOf(slot)
  const heir = cluster.nodes.find(({ master }) => master !== undefined && cluster.nodes[master] === dead)
  const to = await anotherThan(slot)
  process.kill(dead.pid, 'SIGKILL')
  await until('the replica serves', () => call(heir?.port ?? 0, 'SET', 'orphan', 'found'))
  await until('a node tells so', async () => (await cluster.masterOf(slot)) === heir)
  await cluster.moveSlot(slot, to)
  await expect(call(cluster.nodes[to]?.port ?? 0, 'GET', 'orphan')).resolves.toBe('found')
})

it('starts without replicas and with other arguments', async () => {
  expect(small.nodes.map(({ master }) => master)).toEqual([undefined, undefined])
  for (const { port } of small.startupNodes)
    expect(await call(port, 'CONFIG', 'GET', 'maxmemory')).toEqual(['maxmemory', '7340032'])
  expect(await small.masterOf(0)).toBe(small.nodes[0])
  expect(await small.masterOf(16_383)).toBe(small.nodes[1])
})
