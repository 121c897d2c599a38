import { randomUUID } from 'node:crypto'
import type { Refund, Verdict } from '@sluice/core'
import { Cluster, Redis } from 'ioredis'
import { startCluster } from '../../../scripts/servers/cluster.cjs'
import type { RedisStore } from '../src/index.js'
import { slotOf } from '../src/slot.js'
import { adminOf, afterwards, check, clientOf, open, policyOf, privateServer } from './harness.js'
import { functionalClient } from './redis.js'

const options = { timeoutMs: 10_000 }

/** A store whose server knows the script and whose clock is known, with a call on its way: what follows is coalesced. */
async function busy(store: RedisStore): Promise<RedisStore> {
  await store.peek([check('warm-up', policyOf(1))], options)
  void store.peek([check('warm-up', policyOf(1))], options)
  return store
}

/** Calls of the script that a server has run. */
async function callsOf(admin: Redis, command: 'evalsha' | 'eval'): Promise<number> {
  const stats = await admin.info('commandstats')
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0)
}

describe('decisions of one turn', () => {
  test('go out in calls of at most 32, of which none sees what a later one does', async () => {
    const server = await privateServer()
    const store = await busy(open(clientOf(server)))
    const before = await callsOf(adminOf(server), 'evalsha')
    await busy(store)
    const policy = policyOf(70)
    const verdicts = await Promise.all(
      Array.from({ length: 100 }, () => store.consume([check('hot', policy)], options)),
    )
    expect(verdicts.map(([verdict]) => (verdict as Verdict).remaining)).toEqual(
      Array.from({ length: 100 }, (_, i) => Math.max(0, 69 - i)),
    )
    // Two of busy(), four with the hundred.
    expect((await callsOf(adminOf(server), 'evalsha')) - before).toBe(6)
  })

  test('of several kinds on one key are done in the order in which they were asked for', async () => {
    const store = await busy(open(functionalClient()))
    const policy = policyOf(10)
    const [charged] = await store.consume([check('k', policy, 4)], options)
    const { atUs, resetUs } = charged as Verdict
    const refund: Refund = { key: 'k', policy, units: 3, atUs, resetUs }
    await busy(store)
    const answers = await Promise.all([
      store.consume([check('k', policy, 5)], options),
      store.peek([check('k', policy, 2)], options),
      store.refund([refund], options),
      store.consume([check('k', policy, 2), check('other', policy, 11)], options),
      store.consume([{ key: 'k', policy, least: 1, most: 9 }], options),
      store.peek([check('k', policy, 0)], options),
    ])
    expect(
      answers.map((verdicts) => verdicts?.map(({ granted, remaining }) => [granted, remaining])),
    ).toEqual([
      [[5, 1]],
      [[0, 1]],
      undefined,
      [
        [0, 4],
        [0, 10],
      ],
      [[4, 0]],
      [[0, 0]],
    ])
  })

  test('deny one another nothing: each is all or nothing by itself', async () => {
    const store = await busy(open(functionalClient()))
    const [wide, narrow] = [policyOf(100, { name: 'wide' }), policyOf(3, { name: 'narrow' })]
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        store.consume([check('all', wide), check(`user-${i % 5}`, narrow)], options),
      ),
    )
    expect(answers.filter((verdicts) => verdicts.every(({ allowed }) => allowed))).toHaveLength(15)
    const [standing] = await store.peek([check('all', wide, 0)], options)
    expect(standing).toMatchObject({ remaining: 85 })
  })

  test('of which some may not touch their keys fail alone', async () => {
    const server = await privateServer()
    const admin = adminOf(server)
    await admin.call('ACL', 'SETUSER', 'limited', 'on', '>secret', '~sluice:mine*', '+@all')
    const store = open(
      new Redis(server.url, { username: 'limited', password: 'secret', disconnectTimeout: 50 }),
    )
    const policy = policyOf(10)
    await store.peek([check('mine', policy)], options)
    void store.peek([check('mine', policy)], options)
    const answers = await Promise.allSettled(
      ['mine:a', 'theirs', 'mine:b'].map((key) => store.consume([check(key, policy)], options)),
    )
    expect(answers).toMatchObject([
      { value: [{ granted: 1, remaining: 9 }] },
      { reason: { code: 'SLUICE_STORE_FAILED', message: expect.stringContaining('NOPERM') } },
      { value: [{ granted: 1, remaining: 9 }] },
    ])
  })

  test('are denied or told about by a server that is out of memory, which cannot charge', async () => {
    const server = await privateServer()
    const admin = adminOf(server)
    const store = await busy(open(clientOf(server)))
    const policy = policyOf(1)
    await store.consume([check('used up', policy)], options)
    await admin.config('SET', 'maxmemory', 1)
    await busy(store)
    const answers = await Promise.allSettled([
      store.consume([check('used up', policy)], options),
      store.consume([check('fresh', policy)], options),
      store.peek([check('fresh', policy)], options),
    ])
    expect(answers).toMatchObject([
      { value: [{ allowed: false }] },
      { reason: { message: expect.stringContaining('OOM') } },
      { value: [{ allowed: true, remaining: 0 }] },
    ])
    await admin.config('SET', 'maxmemory', 0)
    expect(await store.consume([check('fresh', policy)], options)).toMatchObject([{ granted: 1 }])
  })

  test('are each charged once by a server that has forgotten the script, which is sent for all of them B91', async () => {
    const server = await privateServer()
    const admin = adminOf(server)
    const store = await busy(open(clientOf(server)))
    const before = await callsOf(admin, 'eval')
    const policy = policyOf(2000)
    await admin.script('FLUSH')
    const answers = await Promise.all(
      Array.from({ length: 1000 }, (_, i) => store.consume([check(`k${i % 10}`, policy)], options)),
    )
    expect(answers.flat().filter(({ granted }) => granted === 1)).toHaveLength(1000)
    for (let i = 0; i < 10; i++) {
      expect(await store.peek([check(`k${i}`, policy, 0)], options)).toMatchObject([{ remaining: 1900 }])
    }
    const sent = (await callsOf(admin, 'eval')) - before
    expect(sent).toBeGreaterThan(0)
    expect(sent).toBeLessThan(10)
  })

  test('that come to thousands are all decided', async () => {
    const store = open(functionalClient())
    const policy = policyOf(1000)
    const verdicts = await Promise.all(
      Array.from({ length: 5000 }, (_, i) => store.consume([check(`k${i % 4}`, policy)], options)),
    )
    expect(verdicts.flat().filter(({ allowed }) => allowed)).toHaveLength(4000)
  })
})

describe('decisions of one turn, in a Cluster', () => {
  let cluster: Awaited<ReturnType<typeof startCluster>>
  beforeAll(async () => {
    cluster = await startCluster({ replicas: 0 })
  })
  afterAll(() => cluster.stop())

  const openStore = (): RedisStore => open(new Cluster(cluster.startupNodes), { prefix: randomUUID() })

  test('share a call where they share a slot', async () => {
    const store = openStore()
    const policy = policyOf(30)
    await store.peek([check('{a}', policy)], options)
    const admins = cluster.nodes.map((node) => adminOf(node))
    const total = async (): Promise<number> =>
      (await Promise.all(admins.map((admin) => callsOf(admin, 'evalsha')))).reduce(
        (sum, calls) => sum + calls,
      )
    for (const key of ['{a}', '{b}', '{c}']) await store.peek([check(key, policy)], options)
    const before = await total()
    void store.peek([check('{a}', policy)], options)
    const verdicts = await Promise.all(
      Array.from({ length: 60 }, (_, i) =>
        store.consume([check(['{a}', '{b}', '{c}'][i % 3] as string, policy)], options),
      ),
    )
    expect(verdicts.flat().every(({ allowed }) => allowed)).toBe(true)
    // The one that went ahead, and of 20 for each slot two calls.
    expect((await total()) - before).toBe(7)
  })

  test('whose keys are on both ends of a slot that moves are all decided', async () => {
    const store = openStore()
    const policy = policyOf(10)
    const slot = slotOf('{moving}')
    const source = await cluster.masterOf(slot)
    const target = (cluster.nodes.findIndex(({ port }) => port === source.port) + 1) % 3
    const keys = ['{moving}:a', '{moving}:b', '{moving}:c']
    await store.consume([check('{moving}:b', policy, 4)], options)
    await cluster.beginMigration(slot, target)
    afterwards(() => cluster.finishMigration(slot, target))
    void store.peek([check('{moving}:b', policy)], options)
    const answers = await Promise.all(keys.map((key) => store.consume([check(key, policy)], options)))
    expect(answers.flat().map(({ remaining }) => remaining)).toEqual([9, 5, 9])
    const errors = await Promise.all(cluster.nodes.map((node) => adminOf(node).info('errorstats')))
    expect(errors.join()).toContain('errorstat_TRYAGAIN')
  })
})
