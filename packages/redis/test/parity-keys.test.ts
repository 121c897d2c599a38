import { randomUUID } from 'node:crypto'
import { type Algorithm, algorithmNames, type Check, decide, type Policy, resolvePolicy } from '@sluice/core'
import { functionalClient } from './redis.js'
import { decode, look, type Raw, writeLog } from './state.js'
import { extraTtlMs, runTimed } from './timed-store.js'

const client = functionalClient({ keyPrefix: '' })
afterAll(() => client.quit())

const nowUs = 1_800_000_000_123_456
const windowUs = 60_000_000
const check = (key: string, policy: Policy, cost = 1): Check => ({
  key,
  policy: resolvePolicy(policy),
  least: cost,
  most: cost,
})

async function charge(checks: readonly Check[], atUs = nowUs) {
  const [verdicts] = await runTimed(client, [{ checks, charge: true, notAfterUs: atUs }], atUs)
  return verdicts ?? []
}

function fresh(checks: readonly Check[]) {
  return decide(
    checks,
    checks.map(() => undefined),
    nowUs,
  ).map(({ next, ...verdict }) => verdict)
}

const newKey = (): string => `test:{${randomUUID()}}`

/** A value of doubles, and of whole numbers of four bytes in place of strings. */
function bytes(...values: (number | `${number}`)[]): Buffer {
  return Buffer.concat(
    values.map((value) => {
      const cell = Buffer.alloc(typeof value === 'number' ? 8 : 4)
      if (typeof value === 'number') cell.writeDoubleLE(value)
      else cell.writeUInt32LE(Number(value))
      return cell
    }),
  )
}

const start = Math.floor(nowUs / windowUs) * windowUs
const index = start / windowUs
const huge = '4294967295'
const ringSlice = Math.floor(nowUs / (windowUs / 30))
const ringCounts = (units: `${number}`): `${number}`[] => Array(31).fill(units)
const debts = [
  bytes(nowUs + windowUs / 2 + 0.5),
  bytes(nowUs + 2 * windowUs + 1),
  bytes(1e300),
  bytes(Number.NaN),
  bytes(Number.POSITIVE_INFINITY),
  bytes(nowUs + windowUs, '4000', '7'),
  bytes(nowUs + 0.5, '1', '7'),
  bytes(1e300, '0', '7', 1e301),
  bytes(nowUs + 2 * windowUs + 1, '0', '7', Number.NaN),
  bytes(nowUs + 5e15, '0', '7', 1e300),
]
const lookalikes: Record<Algorithm, Raw[]> = {
  'fixed-window': [
    bytes(start, huge),
    bytes(start + 0.5, '7'),
    bytes(start + 2 * windowUs, '7'),
    bytes(Number.NaN, '7'),
    bytes(Number.POSITIVE_INFINITY, '7'),
  ],
  'sliding-window-counter': [
    bytes(index, '0', huge),
    bytes(index, huge, '0'),
    bytes(index - 0.5, '7', '7'),
    bytes(index + 2, '7', '7'),
    bytes(Number.NaN, '7', '7'),
    bytes(Number.POSITIVE_INFINITY, '7', '7'),
  ],
  'token-bucket': [
    bytes(nowUs + windowUs, 0, huge, '7'),
    bytes(nowUs + windowUs, -1, '0', '7'),
    bytes(nowUs, 0.5, '0', '7'),
    bytes(nowUs, 1e300, '0', '7'),
    bytes(nowUs, Number.NaN, '0', '7'),
    bytes(nowUs + 0.5, 0, '0', '7'),
    bytes(nowUs + windowUs + 1, 0, '0', '7'),
    bytes(Number.NaN, 0, '0', '7'),
    bytes(Number.NEGATIVE_INFINITY, 0, '0', '7'),
  ],
  'sliding-window-log': [
    writeLog([0, 0]),
    writeLog([0, 0], [nowUs, 100_001]),
    writeLog([0, 7], [nowUs, 6]),
    writeLog([0, 0], [nowUs + windowUs + 1, 7]),
    writeLog([0, 0], [nowUs - windowUs, 7]),
    [Buffer.alloc(10), Buffer.alloc(10), Buffer.alloc(10)],
    [Buffer.alloc(10, 0xff), Buffer.alloc(10, 0xff), Buffer.alloc(10, 0xff)],
    [...writeLog([0, 0]), Buffer.alloc(11, 1)],
    [Buffer.from('an element of'), Buffer.from('somebody'), Buffer.from('else')],
  ],
  'sliding-window-ring': [
    bytes(ringSlice, huge, ...ringCounts(huge)),
    bytes(ringSlice, '1240000000', ...ringCounts('40000000')),
    bytes(ringSlice, '32', ...ringCounts('1'), '1'),
    bytes(ringSlice, '0'),
    bytes(ringSlice + 0.5, '31', ...ringCounts('1')),
    bytes(ringSlice + 31, '31', ...ringCounts('1')),
    bytes(ringSlice - 31, '31', ...ringCounts('1')),
    bytes(Number.NaN, '31', ...ringCounts('1')),
    bytes(Number.POSITIVE_INFINITY, '31', ...ringCounts('1')),
    bytes(1e300, '31', ...ringCounts('1')),
  ],
  gcra: debts,
  'leaky-bucket': debts,
}

type Garbage = readonly [what: string, put: (key: string) => Promise<unknown>]

const anyGarbage: readonly Garbage[] = [
  ['a list', (key) => client.rpush(key, 'a')],
  ['a hash', (key) => client.hset(key, 'a', '1')],
  ['a set', (key) => client.sadd(key, 'a')],
  ['a sorted set', (key) => client.zadd(key, 1, 'a')],
  ['a stream', (key) => client.xadd(key, '*', 'a', '1')],
  ['a bitmap', (key) => client.setbit(key, 1000, 1)],
  ['a HyperLogLog', (key) => client.pfadd(key, 'a')],
  ['a number', (key) => client.set(key, 5)],
  ['an empty string', (key) => client.set(key, '')],
  ...[7, 8, 12, 16, 20, 24, 32, 1000].flatMap((length): Garbage[] => [
    [`${length} zero bytes`, (key) => client.set(key, Buffer.alloc(length))],
    [`${length} bytes of ones`, (key) => client.set(key, Buffer.alloc(length, 0xff))],
  ]),
]

describe.each(algorithmNames.map((name) => [name] as const))('at a key of %s', (algorithm) => {
  const policy: Policy = { algorithm, limit: 7, window: '1m' }
  if (algorithm === 'leaky-bucket') policy.queue = 6
  const garbage: readonly Garbage[] = [
    ...anyGarbage,
    ...lookalikes[algorithm].map((raw, i): Garbage => {
      if (Buffer.isBuffer(raw)) return [`a lookalike ${raw.toString('hex')}`, (key) => client.set(key, raw)]
      return [`a lookalike, list ${i + 1}`, (key) => client.rpush(key, ...raw)]
    }),
  ]

  test.each(garbage)(
    '%s counts as none, and the next charge writes over it with an expiry',
    async (_, put) => {
      const [key, other] = [newKey(), newKey()]
      await put(key)
      const denied = await charge([check(key, policy, 8)])
      expect(denied).toEqual(fresh([check(key, policy, 8)]))
      expect(await client.pttl(key)).toBe(-1)

      const checks = [check(key, policy)]
      expect(await charge(checks)).toEqual(fresh(checks))
      expect(await client.pttl(key)).toBeGreaterThan(extraTtlMs)
      await charge([check(other, policy)])
      const code = checks[0]?.policy.wire[0] as string
      const held = await look(client, [key, other])
      const stateOf = (key: string): unknown => decode(code, held.get(key)?.raw as Raw)
      expect(stateOf(key)).toEqual(stateOf(other))
      await client.del(key, other)
    },
  )

  test('garbage at another key of the call touches no other answer', async () => {
    const tag = newKey()
    const checks = [check(`${tag}1`, policy, 3), check(`${tag}2`, policy, 3)]
    await client.rpush(`${tag}1`, 'a')
    expect(await charge(checks)).toEqual(fresh(checks))
    await client.del(`${tag}1`, `${tag}2`)
  })

  test.each(garbage)('a refund leaves %s as it is', async (_, put) => {
    const key = newKey()
    await put(key)
    const before = await client.dumpBuffer(key)
    for (const resetUs of [windowUs, start + 2 * windowUs - nowUs, start + windowUs - nowUs]) {
      const refund = { key, policy: resolvePolicy(policy), units: 3, atUs: nowUs, resetUs }
      const [verdicts] = await runTimed(client, [{ refunds: [refund], notAfterUs: nowUs }], nowUs)
      expect(verdicts).toEqual([expect.objectContaining({ allowed: true, granted: 0 })])
    }
    expect(await client.dumpBuffer(key)).toEqual(before)
    await client.del(key)
  })

  test('a key that lost its expiry gets one by a refund', async () => {
    const key = newKey()
    const [verdict] = await charge([check(key, policy, 3)])
    await client.persist(key)
    const refund = {
      key,
      policy: resolvePolicy(policy),
      units: 2,
      atUs: nowUs,
      resetUs: verdict?.resetUs ?? 0,
    }
    const [verdicts] = await runTimed(client, [{ refunds: [refund], notAfterUs: nowUs }], nowUs)
    expect(verdicts).toEqual([expect.objectContaining({ granted: 2 })])
    expect(await client.pttl(key)).toBeGreaterThan(extraTtlMs)
    await client.del(key)
  })

  test('a key that lost its expiry gets one by the next charge, and not by a denial', async () => {
    const key = newKey()
    await charge([check(key, policy, 3)])
    await client.persist(key)
    await charge([check(key, policy, 5)])
    expect(await client.pttl(key)).toBe(-1)
    const [verdict] = await charge([check(key, policy, 2)])
    expect(verdict).toMatchObject({ allowed: true, remaining: 2 })
    expect(await client.pttl(key)).toBeGreaterThan(extraTtlMs)
    await client.del(key)
  })
})

test('a token bucket under two limits is kept until it were full from empty for the one that charged last', async () => {
  const key = newKey()
  const large: Policy = { algorithm: 'token-bucket', limit: 100, window: '1m' }
  const small: Policy = { ...large, limit: 10 }
  await charge([check(key, large, 91)])
  expect(await client.pttl(key)).toBeLessThanOrEqual(extraTtlMs + 1000 + 54_600)
  // 8 of 10 tokens are left: whole again in 12 s for the small limit, and in 55 s for the large one.
  for (const atUs of [nowUs, nowUs + 6_000_000]) {
    const [verdict] = await charge([check(key, small)], atUs)
    expect(verdict?.resetUs).toBe(12_000_000)
    expect(await client.pttl(key)).toBeGreaterThan(extraTtlMs + 55_000)
    expect(await client.pttl(key)).toBeLessThanOrEqual(extraTtlMs + 61_000)
  }
  await client.del(key)
})
