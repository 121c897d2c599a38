import { type Policy, resolvePolicy } from '@sluice/core'
import { Redis } from 'ioredis'
import { type RedisServer, startRedis } from './redis.js'
import { writeLog } from './state.js'
import { type Group, runTimed } from './timed-store.js'

const entries = 100_000
const startUs = 1_800_000_000_000_000
const key = 'test:{log}'
const policy = resolvePolicy({
  algorithm: 'sliding-window-log',
  limit: entries,
  window: '1h',
} satisfies Policy)

let server: RedisServer
let client: Redis

beforeAll(async () => {
  server = await startRedis()
  client = new Redis(server.url)
  // One entry of one unit a millisecond.
  const elements = writeLog(
    [0, 0],
    ...Array.from({ length: entries }, (_, i) => [startUs + i * 1000, i + 1] as const),
  )
  for (let i = 0; i < elements.length; i += 10_000) await client.rpush(key, ...elements.slice(i, i + 10_000))
})

afterAll(async () => {
  client.disconnect()
  await server.stop()
})

/** Which commands a call ran within the script, and how often. */
async function commandsOf(group: Group, nowUs: number) {
  await client.config('RESETSTAT')
  const [verdicts] = await runTimed(client, [group], nowUs)
  const stats = [...(await client.info('commandstats')).matchAll(/cmdstat_(\w+):calls=(\d+)/g)]
  const counts = Object.fromEntries(stats.map(([, command, calls]) => [command, Number(calls)]))
  return { verdict: verdicts?.[0], counts }
}

const ask = (cost: number, charge: boolean): Group => ({
  checks: [{ key, policy, least: cost, most: cost }],
  charge,
  notAfterUs: Number.MAX_SAFE_INTEGER,
})

// Three searches at most, each of 17 steps that double and 17 halvings, and the ends of what they find.
const most = 3 * 2 * 17 + 4

describe(`a log of ${entries} entries`, () => {
  const nowUs = startUs + entries * 1000

  test('is read at its ends by a denial while nothing has aged out, and not written', async () => {
    const { verdict, counts } = await commandsOf(ask(1, true), nowUs)
    expect(verdict).toMatchObject({ allowed: false, remaining: 0 })
    expect(counts.lindex).toBe(3)
    expect(Object.keys(counts)).not.toEqual(expect.arrayContaining(['rpush', 'ltrim', 'lrange', 'pexpire']))
  })

  test('is read in logarithmic time by a denial after much has aged out', async () => {
    const { verdict, counts } = await commandsOf(ask(entries, true), startUs + 3_600_000_000 + 50_000_000)
    expect(verdict).toMatchObject({ allowed: false, remaining: 50_001 })
    expect(counts.lindex).toBeGreaterThan(17)
    expect(counts.lindex).toBeLessThanOrEqual(most)
  })

  test('is trimmed by an admission in one command, however much has aged out', async () => {
    const { verdict, counts } = await commandsOf(ask(1, true), startUs + 3_600_000_000 + 50_000_000)
    expect(verdict).toMatchObject({ allowed: true, remaining: 50_000 })
    expect(counts).toMatchObject({ rpush: 1, ltrim: 1, lset: 1, pexpire: 1 })
    expect(counts.lindex).toBeLessThanOrEqual(most)
    expect(await client.llen(key)).toBe(1 + 50_000)
  })
})
