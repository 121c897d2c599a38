import { startCluster } from './cluster.cjs'
import { startRedis } from './redis.cjs'
import { call } from './resp.cjs'
import { startSentinel } from './sentinel.cjs'
import { findValkey } from './valkey.cjs'

const { path: binary, missing } = findValkey()

it('is found, or missing for a reason', () => {
  expect(`${binary ?? ''}${missing ?? ''}`).toMatch(/valkey-server/)
})

type Start = (binary: string) => Promise<{ servers: { port: number }[]; stop: () => Promise<void> }>

const topologies: [string, Start][] = [
  [
    'alone',
    async (binary) => {
      const server = await startRedis({ binary })
      return { servers: [server], stop: server.stop }
    },
  ],
  [
    'in a cluster',
    async (binary) => {
      const { nodes, stop } = await startCluster({ binary })
      return { servers: nodes, stop }
    },
  ],
  [
    'under Sentinels',
    async (binary) => {
      const { servers, sentinels, stop } = await startSentinel({ binary })
      return { servers: [...servers, ...sentinels], stop }
    },
  ],
]

if (!binary) {
  console.warn(`NOT TESTED ON VALKEY: ${missing}`)
} else {
  it.each(topologies)('answers %s', async (_, start) => {
    const { servers, stop } = await start(binary)
    try {
      for (const { port } of servers) expect(await call(port, 'INFO', 'server')).toContain('valkey_version:')
    } finally {
      await stop()
    }
  })
}
