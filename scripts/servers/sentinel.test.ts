import { until } from './launch.cjs'
import { call } from './resp.cjs'
import { startSentinel } from './sentinel.cjs'

type Group = Awaited<ReturnType<typeof startSentinel>>

let group: Group
beforeAll(async () => {
  group = await startSentinel({ replicas: 2 })
})
afterAll(() => group?.stop())

const roleOf = async (port: number) => /role:(\w+)/.exec(`${await call(port, 'INFO', 'replication')}`)?.[1]

it('starts one master, whose other servers are its replicas', async () => {
  const [first, ...others] = group.servers.map(({ port }) => port)
  expect(await group.masterPort()).toBe(first)
  expect(await Promise.all(others.map(roleOf))).toEqual(['slave', 'slave'])
  for (const { port } of group.sentinels)
    expect(await call(port, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', group.name)).toEqual([
      '127.0.0.1',
      `${first}`,
    ])
})

it('has a replica promoted when the master is killed', async () => {
  const [first] = group.servers
  await call(first?.port ?? 0, 'SET', 'key', 'value')
  await call(first?.port ?? 0, 'WAIT', 2, 0)
  process.kill(first?.pid ?? 0, 'SIGKILL')
  const port = await until('another is the master', async () => {
    const master = await group.masterPort()
    return master !== first?.port && master
  })
  expect(await call(port, 'GET', 'key')).toBe('value')
})

it('changes the master on a graceful failover', async () => {
  const old = await group.masterPort()
  await group.failover()
  const port = await group.masterPort()
  expect(port).not.toBe(old)
  await expect(call(port, 'SET', 'key', 'new')).resolves.toBe('OK')
})
