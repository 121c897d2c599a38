import { pass, take, terms, warmUp } from '../../test/leasing.js'
import { checksOf, SharedStore } from '../../test/shared-store.js'
import { MemoryStore } from '../memory-store.js'
import { type Policy, resolvePolicy } from '../policy.js'
import type { Check } from '../store.js'
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

test('holds no more than it will probably spend', async () => {
  const reservation = process()
  const checks = checksFor()
  // Ten in the life of a lease.
  for (let i = 0; i < 60; i++) {
    await take(reservation, checks)
    expect(reservation.held).toBeLessThanOrEqual(14)
    await pass(500)
  }
  expect(store.sent('consume')).toBeLessThan(15)
})

test.each([
  ['a process alone', 1, 50],
  ['one of 4', 4, 50],
  ['one of 20', 20, 25],
  ['one of 100', 100, 5],
  ['one of 1000', 1000, 0],
  ['one of an unknown number', undefined, 0],
])('%s holds its share of half of what the store has left', async (_, nodes, most) => {
  const reservation = process(nodes)
  const checks = checksFor({ limit: 1000 + 200 })
  let held = 0
  for (let i = 0; i < 200; i++) {
    await take(reservation, checks, { max: 50, ttlMs: 5000 })
    held = Math.max(held, reservation.held)
    await pass(10)
  }
  expect(held).toBeLessThanOrEqual(most * 1.2)
  // It is seen after the one that asked was served.
  expect(held).toBeGreaterThanOrEqual(most * 0.9 - 1)
})

test('gives back what is too much once there are more processes', async () => {
  let nodes = 1
  const reservation = new Reservation(store, () => nodes)
  const checks = checksFor()
  const lease = { max: 500, ttlMs: 5000 }
  while (reservation.held < 100) await warmUp(reservation, checks, 10, lease)
  nodes = 20
  await take(reservation, checks, lease)
  await pass(0)
  expect(reservation.held).toBeLessThanOrEqual(25)
  expect(await store.remaining(checks)).toBe(1000 - reservation.tally.admitted - reservation.held)
})

test.each([50, 500])(
  'at a limit of 1,000,000 a minute asks the store at most 1.1 / %d times a request',
  async (max) => {
    let nowMs = 0
    let calls = 0
    const memory = new MemoryStore({ nowUs: () => 1_800_000_000_000_000 + Math.floor(nowMs * 1000) })
    const consume: MemoryStore['consume'] = (checks) => {
      calls += 1
      return memory.consume(checks)
    }
    const shared = Object.assign(Object.create(memory) as MemoryStore, { shared: true as const, consume })
    const reservation = new Reservation(shared, () => 1, { nowMs: () => nowMs, after: () => {} })
    const checks = checksFor({ algorithm: 'token-bucket', limit: 1_000_000, window: '1m' })
    let denied = 0
    const ask = async (requests: number): Promise<void> => {
      for (let i = 0; i < requests; i++) {
        const { allowed } = await take(reservation, checks, { ...terms, max })
        if (!allowed) denied += 1
        nowMs += 0.06
      }
    }
    await ask(2000)
    calls = 0
    await ask(40_000)
    expect(denied).toBe(0)
    expect(calls / 40_000).toBeLessThanOrEqual(1.1 / max)
  },
)
