import { randomUUID } from 'node:crypto'
import type { Check, Store } from '@sluice/core'
import { Cluster, type ClusterOptions, Redis, type RedisOptions } from 'ioredis'
import { startCluster } from '../../../scripts/servers/cluster.cjs'
import { afterwards, check, limiter, open, policyOf } from './harness.js'
import { functionalClient } from './redis.js'

const options = { timeoutMs: 5000 }
const policy = policyOf(10)

let cluster: Awaited<ReturnType<typeof startCluster>>
beforeAll(async () => {
  cluster = await startCluster({ replicas: 0 })
})
afterAll(() => cluster.stop())

/** Every call of a store on one key, and what has to come of it. */
async function useAll(store: Store): Promise<void> {
  const one = (units: number): Check => check('1:{k}:x', policy, units)
  const remaining = async () => (await store.peek([one(0)], options))[0]?.remaining
  const [verdict] = await store.consume([one(4)], options)
  expect(verdict).toMatchObject({ allowed: true, granted: 4, remaining: 6 })
  expect(await store.consume([one(7)], options)).toMatchObject([{ allowed: false, granted: 0 }])
  const { atUs = 0, resetUs = 0 } = verdict ?? {}
  await store.refund([{ key: '1:{k}:x', policy, units: 3, atUs, resetUs }], options)
  expect(await remaining()).toBe(9)
  await store.reset(['1:{k}:x'], options)
  expect(await remaining()).toBe(10)
  await store.consume([one(1)], options)
}

const common: readonly (readonly [
  string,
  Pick<RedisOptions, 'keyPrefix' | 'enableAutoPipelining' | 'lazyConnect'>,
])[] = [
  ['keyPrefix', { keyPrefix: 'app:' }],
  ['enableAutoPipelining', { enableAutoPipelining: true }],
  ['lazyConnect', { lazyConnect: true }],
]

const ofConnections: readonly (readonly [string, RedisOptions])[] = [
  ['maxRetriesPerRequest 0', { maxRetriesPerRequest: 0 }],
  ['maxRetriesPerRequest 20', { maxRetriesPerRequest: 20 }],
  ['maxRetriesPerRequest null', { maxRetriesPerRequest: null }],
  ['commandTimeout', { commandTimeout: 5000 }],
  ['stringNumbers', { stringNumbers: true }],
  ['RESP2', { protocol: 2 }],
  ['RESP3 with its own replies', { protocol: 3, replyMapping: 'resp3' } as RedisOptions],
  ['enableReadyCheck false', { enableReadyCheck: false }],
]

describe.each([[true], [false]])('with duplicate %s, a client', (duplicate) => {
  const prefix = () => `p-${randomUUID()}`

  test.each<readonly [string, RedisOptions]>([
    ['no options', {}],
    ...common,
    ...ofConnections,
    ['enableOfflineQueue false', { enableOfflineQueue: false }],
  ])('of one server works with %s', async (_, settings) => {
    await useAll(open(functionalClient({ keyPrefix: '', ...settings }), { prefix: prefix(), duplicate }))
  })

  test.each<readonly [string, ClusterOptions]>([
    ['no options', {}],
    ...common,
    ...ofConnections.map(([name, redisOptions]) => [name, { redisOptions }] as const),
    ['keyPrefix of its nodes', { redisOptions: { keyPrefix: 'app:' } }],
    ['scaleReads slave', { scaleReads: 'slave' }],
    ['scaleReads all', { scaleReads: 'all' }],
    ['scaleReads of its own', { scaleReads: (nodes: Redis[]) => nodes.at(-1) as Redis }],
    ['retries of its own', { maxRedirections: 16, retryDelayOnFailover: 100, slotsRefreshInterval: 50 }],
  ])('of a Cluster works with %s', async (_, settings) => {
    const client = new Cluster(cluster.startupNodes, settings)
    await useAll(open(client, { prefix: prefix(), duplicate }))
  })

  test('of a Cluster works with enableOfflineQueue false once it is connected', async () => {
    const client = new Cluster(cluster.startupNodes, { enableOfflineQueue: false })
    await new Promise((resolve) => client.once('ready', resolve))
    // With the client as it is, a node that is still connecting refuses, and the store fails.
    if (!duplicate) await Promise.all(client.nodes().map((node) => node.connect().catch(() => {})))
    await useAll(open(client, { prefix: prefix(), duplicate }))
  })

  test.each([['one server'], ['a Cluster']])(
    'of %s writes the keys of its keyPrefix alone, whatever it is asked B97',
    async (where) => {
      const plain =
        where === 'a Cluster'
          ? cluster.nodes.map(({ url }) => new Redis(url))
          : [functionalClient({ keyPrefix: '' })]
      afterwards(() => plain.map((client) => client.disconnect()))
      const app = `app-${randomUUID()}:`
      const clients = ['one:', 'two:'].map((name) => {
        const keyPrefix = app + name
        return where === 'a Cluster'
          ? new Cluster(cluster.startupNodes, { keyPrefix })
          : functionalClient({ keyPrefix })
      })
      const written = async (): Promise<string[]> => {
        const keys = await Promise.all(plain.map((client) => client.keys(`${app}*`)))
        return keys
          .flat()
          .map((key) => key.slice(app.length))
          .sort()
      }
      const [one, two] = clients.map((client) =>
        limiter(open(client, { duplicate }), { blocks: true, algorithm: 'fixed-window' }),
      ) as [ReturnType<typeof limiter>, ReturnType<typeof limiter>]
      const decision = await one.consume({ key: 'k', cost: 2 })
      await one.peek({ key: 'k' })
      await one.refund(decision, 1)
      expect(await written()).toEqual(['one:sluice:1:{k}:test:test:fw3600000'])
      expect(await two.consume({ key: 'k' })).toMatchObject({ remaining: 2 })
      await one.block('k', '1m')
      expect(await written()).toEqual([
        'one:sluice:1:{k}:test:-:bk',
        'one:sluice:1:{k}:test:test:fw3600000',
        'two:sluice:1:{k}:test:test:fw3600000',
      ])
      await one.reset('k')
      await one.unblock('k')
      await two.reset('k')
      expect(await written()).toEqual([])
    },
  )
})
