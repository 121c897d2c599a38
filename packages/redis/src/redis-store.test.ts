import {
  type Algorithm,
  algorithmNames,
  type Decision,
  Limiter,
  type Policy,
  SluiceError,
} from '@sluice/core'
import { adminOf, afterwards, clientOf, limiter, open, privateServer } from '../test/harness.js'
import { functionalClient } from '../test/redis.js'
import { RedisStore, type RedisStoreOptions } from './redis-store.js'

function codeOf(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    if (error instanceof SluiceError) return `${error.code} ${error.message}`
  }
  return 'nothing was thrown'
}

describe('construction', () => {
  test.each([
    ['nothing', undefined],
    ['a URL', 'redis://127.0.0.1:6379'],
    ['a client of another library', { sendCommand: () => {}, connect: () => {} }],
    [
      'a Cluster of another library',
      { isCluster: true, status: 'ready', duplicate: () => {}, callBuffer: () => {} },
    ],
  ])('refuses %s as its client', (_, client) => {
    expect(codeOf(() => new RedisStore(client as never))).toMatch(
      /^SLUICE_BAD_CLIENT .*Expected an ioredis client/,
    )
  })

  test.each([
    [{ prefix: '' }, 'SLUICE_BAD_OPTION', 'prefix'],
    [{ prefix: '{rl}' }, 'SLUICE_BAD_OPTION', 'prefix'],
    [{ prefix: 'x'.repeat(65) }, 'SLUICE_BAD_OPTION', 'prefix'],
    [{ prefix: 7 }, 'SLUICE_BAD_OPTION', 'prefix'],
    [{ duplicate: 'yes' }, 'SLUICE_BAD_OPTION', 'duplicate'],
    [{ logger: {} }, 'SLUICE_BAD_OPTION', 'logger'],
    [{ prefixx: 'a' }, 'SLUICE_UNKNOWN_OPTION', 'prefixx'],
  ])('refuses the options %j', (options, code, option) => {
    const client = functionalClient({ lazyConnect: true })
    const text = codeOf(() => new RedisStore(client, options as RedisStoreOptions))
    expect(text).toContain(code)
    expect(text).toContain(`\`${option}\``)
  })
})

describe('keys', () => {
  test('are prefix, version, key in braces, limiter, policy, and algorithm with its window', async () => {
    const client = functionalClient()
    const store = open(client, { prefix: 'app' })
    await new Limiter({ store, name: 'login', limit: 1, window: '15m', timeoutMs: 5000 }).consume({
      key: 'ip:::1}{',
    })
    const keys = await client
      .keys('test:*')
      .then((all) => all.map((key) => key.replace(/^test:[0-9a-f-]+:/, '')))
    expect(keys).toContain('app:1:{ip:::1%7D%7B}:login:login:sc900000')
  })

  test('carry the keyPrefix of the client once, in every call B97', async () => {
    const client = functionalClient()
    const store = open(client)
    const limit = limiter(store, { algorithm: 'fixed-window' })
    await limit.consume({ key: 'a' })
    await limit.peek({ key: 'a' })
    expect(await client.exists('sluice:1:{a}:test:test:fw3600000')).toBe(1)
  })

  test.each([
    ['fixed-window', '1h', 3_601_000],
    ['sliding-window-counter', '1h', 7_201_000],
    ['token-bucket', '1h', 1_201_000],
    ['gcra', '1h', 1_201_000],
    ['gcra', '1ms', 1001],
    ['fixed-window', '400d', 34_560_001_000],
  ] as const)('of %s with a window of %s expire in time B107', async (algorithm, window, atMostMs) => {
    const client = functionalClient()
    const limit = limiter(open(client), { algorithm, window })
    await limit.consume({ key: 'a' })
    const [key] = (await client.keys(`${client.options.keyPrefix}*`)) as [string]
    const ttl = await new Promise<number>((resolve) => {
      const plain = functionalClient({ keyPrefix: '' })
      afterwards(() => plain.disconnect())
      resolve(plain.pttl(key))
    })
    expect(ttl).toBeGreaterThan(0)
    expect(ttl).toBeLessThanOrEqual(atMostMs)
  })
})

describe('decisions', () => {
  test('of several policies are one command, all or nothing B87', async () => {
    const server = await privateServer()
    const watcher = adminOf(server)
    const store = open(clientOf(server))
    const limit = new Limiter({
      store,
      policies: [
        { name: 'wide', limit: 100, window: '1h', algorithm: 'fixed-window' },
        { name: 'narrow', limit: 2, window: '1h', algorithm: 'gcra' },
      ],
      timeoutMs: 5000,
    })
    await limit.consume({ key: 'a' })
    await limit.consume({ key: 'a' })
    const before = await watcher.info('commandstats')
    const denied = await limit.consume({ key: 'a' })
    const after = await watcher.info('commandstats')
    const calls = (info: string, command: string): number =>
      Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(info)?.[1] ?? 0)
    expect(calls(after, 'evalsha') - calls(before, 'evalsha')).toBe(1)
    expect(calls(after, 'set') - calls(before, 'set')).toBe(0)
    expect(calls(after, 'time') - calls(before, 'time')).toBe(1)
    expect(denied).toMatchObject({ allowed: false, reason: 'quota', source: 'store' })
    expect(denied.policies.map(({ name, allowed, remaining }) => [name, allowed, remaining])).toEqual([
      ['wide', true, 98],
      ['narrow', false, 0],
    ])
  })

  test('survive a flush of the script cache in mid-load, each by one more call B91', async () => {
    const server = await privateServer()
    const admin = adminOf(server)
    const limit = limiter(open(clientOf(server)), { limit: 150 })
    await limit.peek({ key: 'a' })
    const calls: Promise<Decision>[] = []
    for (let i = 0; i < 200; i += 1) {
      if (i % 50 === 0) await admin.script('FLUSH')
      calls.push(limit.consume({ key: 'a' }))
    }
    const decisions = await Promise.all(calls)
    expect(decisions.filter(({ degraded }) => degraded)).toEqual([])
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(150)
  })

  test('peek charges nothing and answers as consume would', async () => {
    const client = functionalClient()
    const limit = limiter(open(client))
    const peeked = await limit.peek({ key: 'a' })
    const consumed = await limit.consume({ key: 'a' })
    expect(peeked).toMatchObject({ allowed: true, remaining: 2 })
    expect(consumed).toMatchObject({ allowed: true, remaining: 2 })
  })
})

describe('refund, reset and block', () => {
  test.each(algorithmNames.map((name) => [name] as const))('work under %s', async (algorithm) => {
    const client = functionalClient()
    const limit = limiter(open(client), {
      algorithm,
      limit: 10,
      window: '1h',
      blocks: true,
      ...longQueue(algorithm),
    })
    const remaining = async () => (await limit.peek({ key: 'a', cost: 0 })).remaining
    const whole = await remaining()
    const first = await limit.consume({ key: 'a', cost: 2 })
    const second = await limit.consume({ key: 'a', cost: 3 })
    await limit.refund(second)
    await limit.refund(second)
    expect(await remaining()).toBe(whole - 2)
    await limit.refund(first, 1)
    expect(await remaining()).toBe(whole - 1)
    await limit.reset('a')
    expect(await remaining()).toBe(whole)
    await limit.block('a', '1m')
    const blocked = await limit.consume({ key: 'a' })
    expect(blocked).toMatchObject({ allowed: false, reason: 'blocked', source: 'store' })
    expect(blocked.retryAfterMs).toBeGreaterThan(50_000)
    expect(blocked.retryAfterMs).toBeLessThanOrEqual(60_000)
    const keys = await client.keys(`${client.options.keyPrefix}*`)
    expect(keys.map((key) => key.replace(`${client.options.keyPrefix}`, ''))).toEqual([
      'sluice:1:{a}:test:-:bk',
    ])
    await limit.unblock('a')
    expect(await limit.consume({ key: 'a' })).toMatchObject({ allowed: true })
  })

  test('fail with a code when the server is away B119', async () => {
    const server = await privateServer()
    const limit = limiter(open(clientOf(server)), { blocks: true })
    const decision = await limit.consume({ key: 'a' })
    await server.stop()
    await expect(limit.refund(decision)).rejects.toMatchObject({ code: 'SLUICE_STORE_FAILED' })
    await expect(limit.reset('a')).rejects.toMatchObject({ code: 'SLUICE_STORE_FAILED' })
    await expect(limit.block('a', '1s')).rejects.toMatchObject({ code: 'SLUICE_STORE_FAILED' })
  })
})

/** A leaky bucket of ten an hour would have no places by default; refunds of its last place are enough here. */
function longQueue(algorithm: Algorithm): Partial<Policy> {
  return algorithm === 'leaky-bucket' ? { queue: 9 } : {}
}
