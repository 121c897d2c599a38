import { randomUUID } from 'node:crypto'
import { algorithmNames, type ClockUs, Limiter, MemoryStore, resolvePolicy, type Store } from '@sluice/core'
import { parity, storeContract } from '@sluice/testing'
import { type Ask, askOver, RemoteStore } from '../../test/remote-store.js'
import { startWorkerd, type Workerd } from '../../test/workerd.js'
import { encodeCall } from './wire.js'

let workerd: Workerd
let client: ReturnType<typeof askOver>

beforeAll(async () => {
  workerd = await startWorkerd('store-worker.js', {
    durableObjects: {
      OBJECTS: { className: 'RateLimitObject', useSQLite: true },
      TIMED: { className: 'TimedObject', useSQLite: true },
      TIMED_KV: { className: 'TimedKvObject' },
    },
  })
  client = askOver(workerd.url)
})
afterAll(async () => {
  client.close()
  await workerd.stop()
})

const ask: Ask = (...args) => client.ask(...args)
/** @param target `<namespace>/<shards, or 0 for an object for each key>` */
const storeAt = (target: string, nowUs: ClockUs = () => 0): Store =>
  new RemoteStore(ask, `/${target}/call`, nowUs)

storeContract('a DurableObjectStore in workerd', (nowUs) => storeAt('TIMED/0', nowUs))
parity(
  'a DurableObjectStore in workerd, beside a MemoryStore',
  (nowUs) => [new MemoryStore({ nowUs }), storeAt('TIMED/0', nowUs)],
  { runs: 2 },
)

describe('a Durable Object', () => {
  const options = { timeoutMs: 10_000 }
  let nowUs = 0
  let object = ''
  beforeEach(() => {
    nowUs = 1.8e15
    object = randomUUID()
  })

  const check = (limit: number, window = '1m', key = object) => {
    const policy = resolvePolicy({ algorithm: 'fixed-window', limit, window })
    return { key: `1:{${key}}:default:${policy.keySuffix}`, policy, least: 1, most: 1 }
  }
  const tell = (what: string, name = object): Promise<unknown> =>
    ask(`/TIMED/${encodeURIComponent(name)}/${what}`, { 'now-us': String(nowUs) }, '')

  test('loses nothing when it is evicted', async () => {
    const store = storeAt('TIMED/0', () => nowUs)
    await store.consume([check(2), check(3, '1h')], options)
    await expect(tell('abort')).rejects.toThrow()
    expect(await store.consume([check(2), check(3, '1h')], options)).toMatchObject([
      { allowed: true, remaining: 0 },
      { allowed: true, remaining: 1 },
    ])
    expect(await store.consume([check(2)], options)).toMatchObject([{ allowed: false }])
  })

  test('keeps nothing of denials, peeks and resets', async () => {
    const store = storeAt('TIMED/0', () => nowUs)
    await store.consume([check(0)], options)
    await store.peek([check(5)], options)
    expect(await tell('kept')).toEqual({ keys: 0, alarmMs: null })
    await store.consume([check(5)], options)
    expect(await tell('kept')).toMatchObject({ keys: 1 })
    await store.reset([check(5).key], options)
    expect(await tell('kept')).toMatchObject({ keys: 0 })
  })

  test('is woken within ten minutes of the end of a count, clears it away, and keeps what still counts', async () => {
    const store = storeAt('TIMED/0', () => nowUs)
    await store.consume([check(5, '1h')], options)
    await store.consume([check(5, '1s')], options)
    const startMs = nowUs / 1000
    expect(await tell('kept')).toEqual({ keys: 2, alarmMs: startMs + 2000 + 600_000 })
    nowUs += 602e6
    expect(await tell('alarm')).toEqual({ keys: 1, alarmMs: startMs + 3_601_000 + 600_000 })
    nowUs = 1.8e15 + 3601e6
    expect(await tell('alarm')).toEqual({ keys: 0, alarmMs: null })
    await store.consume([check(5, '1s')], options)
    expect(await tell('kept')).toMatchObject({ keys: 1, alarmMs: expect.any(Number) })
  })

  test('looks at so many keys at a time that requests need not wait for long', async () => {
    const store = storeAt('TIMED/1', () => nowUs)
    const shard = 'shard 0'
    while (((await tell('alarm', shard)) as { keys: number }).keys > 0) nowUs += 400 * 86_400e6
    const keys = Array.from({ length: 206 }, () => randomUUID())
    for (let i = 0; i < 5; i++) {
      await Promise.all(keys.map((key) => store.consume([check(5, '1s', `${key} ${i}`)], options)))
    }
    nowUs += 2e6
    expect(await tell('alarm', shard)).toEqual({ keys: 6, alarmMs: nowUs / 1000 })
    expect(await tell('alarm', shard)).toEqual({ keys: 0, alarmMs: null })
  })

  test('charges nothing for a call that reaches it late, and tells its time', async () => {
    const store = storeAt('TIMED/0', () => nowUs)
    const late = { method: 'consume', checks: [check(5)], notAfterUs: nowUs - 1 } as const
    const path = `/TIMED/${object}/late`
    expect(await ask(path, { 'now-us': String(nowUs) }, encodeCall(late))).toEqual({ lateAtUs: nowUs })
    expect(await store.peek([check(5)], options)).toMatchObject([{ remaining: 4 }])
    const inTime = encodeCall({ ...late, notAfterUs: nowUs })
    expect(await ask(path, { 'now-us': String(nowUs) }, inTime)).toMatchObject({ verdicts: [{ granted: 1 }] })
  })

  test('says what it was told wrongly', async () => {
    expect(await tell('nothing')).toEqual({ error: expect.stringContaining('JSON') })
  })

  test('counts by its own clock', async () => {
    const fromUs = Date.now() * 1000
    const [verdict] = await storeAt('OBJECTS/0').consume([check(1)], options)
    expect(verdict?.atUs).toBeGreaterThanOrEqual(fromUs)
    expect(verdict?.atUs).toBeLessThanOrEqual(Date.now() * 1000)
  })

  test.each(algorithmNames)('keeps the state of %s in the older kind of storage too', async (algorithm) => {
    const store = storeAt('TIMED_KV/0', () => nowUs)
    const policy = resolvePolicy({ algorithm, limit: 500, window: '1m' })
    const checks = [{ ...check(1), policy, least: 1, most: 1 }]
    const first = (await store.consume(checks, options))[0]
    const second = (await store.consume(checks, options))[0]
    expect(first?.remaining).toBe(policy.burst - 1)
    expect(second?.remaining).toBe(policy.burst - 2)
  })

  test('blocks a key, for a while or for ever, and unblocks it', async () => {
    const store = storeAt('OBJECTS/0')
    const limiter = new Limiter({
      store,
      limit: 5,
      window: '1m',
      blocks: true,
      timeoutMs: 10_000,
      denyStaleMs: 0,
    })
    await limiter.block(object, 'forever')
    expect(await limiter.consume({ key: object })).toMatchObject({ allowed: false, reason: 'blocked' })
    await limiter.unblock(object)
    expect(await limiter.consume({ key: object })).toMatchObject({ allowed: true, remaining: 4 })
    await limiter.close()
  })

  test('gives leases, of which a limiter with reserve spends without asking, and takes back what is left', async () => {
    const store = storeAt('OBJECTS/0')
    const options = { limit: 1000, window: '1d', algorithm: 'fixed-window', timeoutMs: 10_000 } as const
    const limiter = new Limiter({ store, name: 'leased', reserve: { max: 50 }, ...options })
    const sources: string[] = []
    for (let i = 0; i < 20; i++) sources.push((await limiter.consume({ key: object })).source)
    expect(sources).toContain('lease')
    await limiter.close()
    const after = new Limiter({ store, name: 'leased', ...options })
    expect(await after.peek({ key: object, cost: 0 })).toMatchObject({ remaining: 980 })
    await after.close()
  })
})
