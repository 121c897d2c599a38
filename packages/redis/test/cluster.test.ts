import { randomUUID } from 'node:crypto'
import { type Check, Limiter, type Verdict } from '@sluice/core'
import { storeContract } from '@sluice/testing'
import { Cluster, type ClusterOptions } from 'ioredis'
import { startCluster } from '../../../scripts/servers/cluster.cjs'
import { RedisStore } from '../src/index.js'
import { slotOf } from '../src/slot.js'
import { adminOf, check, eventually, limiter, open, policyOf, tryOne } from './harness.js'

let cluster: Awaited<ReturnType<typeof startCluster>>
beforeAll(async () => {
  cluster = await startCluster({ replicas: 0 })
})
afterAll(() => cluster.stop())

const options = { timeoutMs: 5000 }
const policy = policyOf(10)

function indexOf({ port }: { readonly port: number }): number {
  return cluster.nodes.findIndex((node) => node.port === port)
}

function clusterClient(changes: ClusterOptions = {}): Cluster {
  return new Cluster(cluster.startupNodes, changes)
}

/** A store whose keys nobody else has. */
function openStore(changes: ClusterOptions = {}, prefix = randomUUID()): RedisStore {
  return open(clusterClient(changes), { prefix })
}

async function remaining(store: RedisStore, one: Check): Promise<number> {
  const [verdict] = await store.peek([{ ...one, least: 0, most: 0 }], options)
  return (verdict as Verdict).remaining
}

describe('the contract of a store, in a Cluster', () => {
  let client: Cluster
  beforeAll(() => {
    client = clusterClient()
  })
  afterAll(() => client.disconnect())
  storeContract('a RedisStore on a Cluster', () => new RedisStore(client, { prefix: randomUUID() }), {
    clock: false,
  })
})

describe('checks of different slots', () => {
  const one = check('1:{a}:x', policy)
  const other = check('1:{b}:x', policy)

  test('are all charged when all grant, in the order of the checks', async () => {
    const store = openStore()
    const third = check('1:{a}:y', policyOf(3))
    const verdicts = await store.consume([one, other, third], options)
    expect(verdicts.map((verdict) => verdict.remaining)).toEqual([9, 9, 2])
  })

  test('are none charged when one denies B87', async () => {
    const store = openStore()
    await store.consume([check(other.key, policy, 10)], options)
    const verdicts = await store.consume([one, other], options)
    expect(verdicts).toMatchObject([
      { allowed: true, granted: 0, remaining: 10 },
      { allowed: false, granted: 0, remaining: 0 },
    ])
    expect(await remaining(store, one)).toBe(10)
  })

  test('answer a peek as they would be decided, and are not charged', async () => {
    const store = openStore()
    await store.consume([check(other.key, policy, 10)], options)
    expect(await store.peek([one, other], options)).toMatchObject([
      { allowed: true, granted: 0, remaining: 10 },
      { allowed: false },
    ])
    await store.reset([other.key])
    expect(await store.peek([one, other], options)).toMatchObject([{ granted: 1 }, { granted: 1 }])
    expect(await remaining(store, one)).toBe(10)
  })

  test('of hundreds of requests at once admit no more than the limit, and charge what they admit', async () => {
    const store = openStore()
    const wide = policyOf(1000)
    const calls = Array.from({ length: 300 }, () =>
      store.consume([check(one.key, policyOf(40)), check(other.key, wide)], options),
    )
    const admitted = (await Promise.all(calls)).filter((verdicts) => verdicts.every(({ allowed }) => allowed))
    expect(admitted).toHaveLength(40)
    await eventually(
      () => remaining(store, check(other.key, wide)),
      (left) => left === 960,
    )
  })

  test('are refunded and reset together', async () => {
    const store = openStore()
    const verdicts = await store.consume([check(one.key, policy, 4), check(other.key, policy, 4)], options)
    const refunds = [one, other].map(({ key }, i) => {
      const { atUs, resetUs } = verdicts[i] as Verdict
      return { key, policy, units: 3, atUs, resetUs }
    })
    await store.refund(refunds, options)
    expect([await remaining(store, one), await remaining(store, other)]).toEqual([9, 9])
    await store.reset([one.key, other.key])
    expect([await remaining(store, one), await remaining(store, other)]).toEqual([10, 10])
  })

  test('are one slot where the keyPrefix of the client has a tag of its own', async () => {
    const store = openStore({ keyPrefix: '{app}:' })
    const queue = policyOf(5, { algorithm: 'leaky-bucket', queue: 4 })
    const verdicts = await store.consume([check(one.key, queue), other], options)
    expect(verdicts).toMatchObject([{ granted: 1 }, { granted: 1 }])
  })

  test('refuse a leaky bucket, whose charge could not be given back', async () => {
    const store = openStore()
    const queue = policyOf(5, { name: 'queue', algorithm: 'leaky-bucket', queue: 4 })
    await expect(store.consume([one, check(other.key, queue)], options)).rejects.toMatchObject({
      code: 'SLUICE_CROSS_SLOT_QUEUE',
      message: expect.stringContaining('"queue"'),
    })
    expect(await remaining(store, one)).toBe(10)
  })
})

describe('keys', () => {
  test('are all declared: a user who may touch nothing but the prefix can do everything B94 B95', async () => {
    const prefix = randomUUID()
    for (const node of cluster.nodes) {
      await adminOf(node).call('ACL', 'SETUSER', 'app', 'on', '>secret', `~${prefix}:*`, '+@all')
    }
    const store = openStore({ redisOptions: { username: 'app', password: 'secret' } }, prefix)
    const limit = limiter(store, { blocks: true })
    for (const key of ['a', 'b', 'c', 'd', 'e']) {
      const first = await limit.consume({ key, cost: 2 })
      expect(first).toMatchObject({ allowed: true, degraded: false, remaining: 1 })
      await limit.refund(first)
      expect(await limit.consume({ key, cost: 3 })).toMatchObject({ allowed: true, remaining: 0 })
      await limit.reset(key)
      await limit.block(key, '1m')
      expect(await limit.peek({ key })).toMatchObject({ reason: 'blocked' })
      await limit.unblock(key)
      expect(await limit.consume({ key })).toMatchObject({ allowed: true, remaining: 2 })
    }
    const foreign = openStore({ redisOptions: { username: 'app', password: 'secret' } })
    expect(await tryOne(foreign, check('k', policy))).toContain('NOPERM')
  })
})

describe('a Cluster with replicas', () => {
  let replicated: typeof cluster
  beforeAll(async () => {
    replicated = await startCluster()
  })
  afterAll(() => replicated.stop())

  test.each([
    ['slave', true],
    ['slave', false],
    ['all', true],
    ['all', false],
  ] as const)(
    'is asked on its masters only, with scaleReads %s and duplicate %s B98',
    async (scaleReads, duplicate) => {
      const client = new Cluster(replicated.startupNodes, { scaleReads })
      const limit = limiter(open(client, { prefix: randomUUID(), duplicate }), { limit: 20 })
      const keys = Array.from({ length: 20 }, (_, i) => `k${i}`)
      const decisions = await Promise.all(
        keys.flatMap((key) =>
          Array.from({ length: 30 }, async () => {
            await limit.peek({ key })
            return limit.consume({ key })
          }),
        ),
      )
      expect(decisions.filter(({ degraded }) => degraded)).toEqual([])
      expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(20 * keys.length)
      const replicas = replicated.nodes.filter(({ master }) => master !== undefined)
      const stats = await Promise.all(replicas.map((node) => adminOf(node).info('commandstats')))
      expect(stats.filter((text) => /cmdstat_eval/.test(text))).toEqual([])
    },
  )
})

describe('a slot that moves', () => {
  const count = 1200
  const perKey = 5

  test(`leaves the counts of ${count} keys on three masters exact B94 B95`, async () => {
    const store = openStore()
    const several = new Limiter({
      store,
      name: 'test',
      timeoutMs: 10_000,
      onStoreError: 'deny',
      policies: [
        { name: 'narrow', algorithm: 'fixed-window', limit: perKey, window: '400d' },
        { name: 'wide', algorithm: 'gcra', limit: 1000, window: '400d' },
      ],
    })
    const keys = Array.from({ length: count }, (_, i) => `key-${i}`)
    const slot = slotOf('{key-0}')
    const source = indexOf(await cluster.masterOf(slot))
    const target = (source + 1) % 3
    let admitted = 0
    let failed = 0
    const round = async (all: readonly string[]): Promise<void> => {
      const decisions = await Promise.all(all.map((key) => several.consume({ key })))
      admitted += decisions.filter(({ allowed }) => allowed).length
      failed += decisions.filter(({ degraded }) => degraded).length
    }
    await round(keys)
    await cluster.beginMigration(slot, target)
    await round(keys)
    await cluster.moveKeys(slot, target, 1)
    await round(keys)
    await cluster.finishMigration(slot, target)
    for (let i = 0; i < perKey; i++) await round(keys)
    expect({ admitted, failed }).toEqual({ admitted: perKey * count, failed: 0 })
    const masters = await Promise.all(cluster.nodes.map((node) => adminOf(node).dbsize()))
    expect(Math.min(...masters)).toBeGreaterThan(count / 6)
    await cluster.moveSlot(slot, source)
  })

  test.each([
    ['all allow', 0, [true, true], [9, 9]],
    ['one denies, which charges none', 10, [true, false], [10, 0]],
  ])('has keys on two servers, which are decided one by one: %s', async (_, used, allowed, left) => {
    const store = openStore()
    const [one, other] = [check('{moving}:a', policy), check('{moving}:b', policy)]
    const slot = slotOf('{moving}')
    const source = await cluster.masterOf(slot)
    const target = (indexOf(source) + 1) % 3
    await store.consume([{ ...other, least: used, most: used }], options)
    await cluster.beginMigration(slot, target)
    const verdicts = await store.consume([one, other], options)
    expect(verdicts.map((verdict) => verdict.allowed)).toEqual(allowed)
    const errors = await Promise.all(cluster.nodes.map((node) => adminOf(node).info('errorstats')))
    expect(errors.join()).toContain('errorstat_TRYAGAIN')
    await eventually(
      async () => [await remaining(store, one), await remaining(store, other)],
      (now) => `${now}` === `${left}`,
    )
    await cluster.finishMigration(slot, target)
  })

  test('fails a leaky bucket beside a key on another server, which could not be given back', async () => {
    const store = openStore()
    const queue = policyOf(5, { algorithm: 'leaky-bucket', queue: 4 })
    const slot = slotOf('{moving}')
    const target = (indexOf(await cluster.masterOf(slot)) + 1) % 3
    await cluster.beginMigration(slot, target)
    await expect(
      store.consume([check('{moving}:a', policy), check('{moving}:b', queue)], options),
    ).rejects.toMatchObject({ code: 'SLUICE_STORE_FAILED' })
    await cluster.finishMigration(slot, target)
    expect(await remaining(store, check('{moving}:a', policy))).toBe(10)
  })
})
