import { pass, take, terms, warmUp } from '../../test/leasing.js'
import { checksOf, SharedStore } from '../../test/shared-store.js'
import { MemoryStore } from '../memory-store.js'
import { type Policy, resolvePolicy } from '../policy.js'
import type { Check, Refund, Verdict } from '../store.js'
import { Reservation } from './reservation.js'

let store: SharedStore
beforeEach(() => {
  jest.useFakeTimers({ now: 1_800_000_000_000 })
  store = new SharedStore()
})
afterEach(() => {
  jest.useRealTimers()
})

function checksFor(more: Partial<Policy> = {}, key = 'k'): readonly Check[] {
  const policy = resolvePolicy({ algorithm: 'fixed-window', limit: 1000, window: '400d', ...more })
  return checksOf([policy], 1, key)
}

const process = (nodes?: number): Reservation => new Reservation(store, () => nodes)

test('counts in the store what was admitted, and nothing else, once it is closed B122', async () => {
  const [one, other] = [process(), process()]
  const checks = checksFor()
  // Each has settings of its own.
  const settings = [terms, { max: 7, ttlMs: 300, nodes: 3 }] as const
  for (let i = 0; i < 50; i++) {
    for (const [place, reservation] of [one, other].entries()) {
      expect(await take(reservation, checks, settings[place])).toMatchObject({ allowed: true })
    }
    expect(other.held).toBeLessThanOrEqual(7)
    await pass(20)
  }
  expect(one.held).toBeGreaterThan(7)
  await Promise.all([one.close(), other.close()])
  expect(await store.remaining(checks)).toBe(1000 - 100)
})

test('gives back on close what it holds of every key, and waits until that is done', async () => {
  const reservation = process()
  const keys = ['a', 'b', 'c'].map((key) => checksFor({}, key))
  for (let i = 0; i < 20; i++) for (const checks of keys) await warmUp(reservation, checks, 5)
  expect(reservation.held).toBeGreaterThan(30)
  store.outMs = store.backMs = () => 10
  let closed = false
  const closing = reservation.close().then(() => {
    closed = true
  })
  await pass(19)
  expect(closed).toBe(false)
  await pass(1)
  await closing
  for (const checks of keys) expect(await store.remaining(checks)).toBe(1000 - 100)
})

test('what is left tells of the store’s last answer and of what is held, and a peek draws nothing', async () => {
  const reservation = process()
  const checks = checksFor({ limit: 100 })
  for (let i = 1; i <= 90; i++) {
    expect(await take(reservation, checks)).toMatchObject({ remaining: 100 - i, atUs: Date.now() * 1000 })
    await pass(10)
  }
  const { held } = reservation
  const [verdict] = await reservation.peek(checks, { timeoutMs: 100 })
  expect(verdict).toMatchObject({ allowed: true, remaining: 100 - 90 - 1 })
  expect(reservation.held).toBe(held)
  expect(await store.remaining(checks)).toBe(100 - 90 - held)
})

test('a peek admits what is held although the store has nothing left', async () => {
  const reservation = process()
  const other = process()
  const checks = checksFor({ limit: 100 })
  await warmUp(reservation, checks, 40)
  const { held } = reservation
  expect(held).toBeGreaterThan(1)
  while ((await store.remaining(checks)) > 0) await take(other, checks)
  const peek = async (cost: number): Promise<Verdict | undefined> => {
    const priced = checks.map((check) => ({ ...check, least: cost, most: cost }))
    return (await reservation.peek(priced, { timeoutMs: 100 }))[0]
  }
  expect(await peek(held)).toMatchObject({ allowed: true, granted: held, remaining: 0, retryUs: 0 })
  expect(await peek(held + 1)).toMatchObject({ allowed: false, granted: 0, remaining: held })
})

test('a decision that a lease served is refunded to the store', async () => {
  const reservation = process()
  const checks = checksFor()
  await warmUp(reservation, checks)
  const { source, atUs, resetUs } = await take(reservation, checks)
  expect(source).toBe('lease')
  const before = await store.remaining(checks)
  const { key, policy } = checks[0] as Check
  const refund: Refund = { key, policy, units: 1, atUs, resetUs }
  await reservation.refund([refund], { timeoutMs: 100 })
  expect(await store.remaining(checks)).toBe(before + 1)
})

test('a reset forgets what is held, also where the store fails, and the next request is charged anew', async () => {
  const reservation = process()
  const checks = checksFor()
  const keys = checks.map(({ key }) => key)
  await warmUp(reservation, checks)
  await reservation.reset(keys, { timeoutMs: 100 })
  expect(reservation.held).toBe(0)
  expect(await store.remaining(checks)).toBe(1000)
  await warmUp(reservation, checks)
  store.fails = (method) => method === 'reset'
  await expect(reservation.reset(keys, { timeoutMs: 100 })).rejects.toThrow('ECONNRESET')
  expect(reservation.held).toBe(0)
  const { charged, admitted, expired } = reservation.tally
  expect(expired).toBe(charged - admitted)
})

test('what the store fails to take back counts as spent', async () => {
  const reservation = process()
  const checks = checksFor()
  await warmUp(reservation, checks)
  store.fails = (method) => method === 'refund'
  await reservation.close()
  const { charged, admitted, returned, expired } = reservation.tally
  expect({ returned, expired }).toEqual({ returned: 0, expired: charged - admitted })
  expect(await store.remaining(checks)).toBe(1000 - charged)
})

test('holds leases of 16,384 keys at once; of further keys each decision is the store’s own', async () => {
  jest.useRealTimers()
  const memory = new MemoryStore()
  const shared = Object.assign(Object.create(memory) as MemoryStore, {
    shared: true as const,
    consume: memory.consume.bind(memory),
  })
  const reservation = new Reservation(shared, () => 1)
  const sources = new Map<string | undefined, number>()
  for (let i = 0; i < 16_400; i++) {
    const { source } = await take(reservation, checksFor({}, `${i}`))
    sources.set(source, (sources.get(source) ?? 0) + 1)
  }
  expect([...sources]).toEqual([
    ['lease', 16_384],
    [undefined, 16],
  ])
})
