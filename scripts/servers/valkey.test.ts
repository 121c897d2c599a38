import { startCluster } from './cluster.cjs'
import { startRedis } from './redis.cjs'
import { call } from './resp.cjs'
import { startSentinel } from './sentinel.cjs'
import { findValkey } from './valkey.cjs'

const { path: binary = '', missing } = findValkey()

it('is found, or missing for a reason', () => {
  expect(`${binary}${missing ?? ''}`).toMatch(/valkey-server/)
})

const whenFound = missing ? it.skip : it

whenFound.each<[string, () => Promise<{ servers: { port: number }[]; stop: () => Promise<void> }>]>([
  [
    'alone',
    async () => {
      const server = await startRedis({ binary })
      return { servers: [server], stop: server.stop }
    },
  ],
  [
    'in a cluster',
    async () => {
      const { nodes, stop } = await startCluster({ binary })
      return { servers: nodes, stop }
    },
  ],
  [
    'under Sentinels',
    async () => {
      const { servers, sentinels, stop } = await startSentinel({ binary })
      return { servers: [...servers, ...sentinels], stop }
    },
  ],
])('answers %s', async (_, start) => {
  const { servers, stop } = await start()
  try {
    for (const { port } of servers) expect(await call(port, 'INFO', 'server')).toContain('valkey_version:')
  } finally {
    await stop()
  }
})
