import { pass, take, terms, warmUp } from '../../test/leasing.js'
import { checksOf, SharedStore } from '../../test/shared-store.js'
import type { Algorithm } from '../algorithms/index.js'
import { type Policy, resolvePolicy } from '../policy.js'
import type { Check, Verdict } from '../store.js'
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

test('gives back within a second or two what nobody asks for any more', async () => {
  const reservation = process()
  const checks = checksFor()
  await warmUp(reservation, checks)
  expect(reservation.held).toBeGreaterThan(10)
  await pass(2000)
  expect(reservation.held).toBe(0)
  expect(await store.remaining(checks)).toBe(1000 - 100)
  await take(reservation, checks)
  expect(await store.remaining(checks)).toBe(1000 - 101)
})

test('gives back what is idle in its own time, beside leases of longer lives', async () => {
  const reservation = process()
  const [long, short] = [checksFor({}, 'long'), checksFor({}, 'short')]
  await warmUp(reservation, long, 100, { ...terms, ttlMs: 3_600_000 })
  await warmUp(reservation, short)
  await pass(2000)
  expect(await store.remaining(short)).toBe(1000 - 100)
  expect(reservation.held).toBeGreaterThan(10)
})

test('spends nothing beyond the life of its lease, and gives it back', async () => {
  const reservation = process()
  const checks = checksFor()
  const lease = { ...terms, ttlMs: 1000 }
  await warmUp(reservation, checks, 100, lease)
  const { held } = reservation
  expect(held).toBeGreaterThan(5)
  // Asked for now and then, so that it is not idle.
  for (let i = 0; i < 5; i++) {
    await pass(150)
    await take(reservation, checks, lease)
  }
  await pass(400)
  store.calls.length = 0
  expect(await take(reservation, checks, lease)).toMatchObject({ allowed: true })
  expect(store.calls.map(({ method }) => method)).toContain('consume')
  expect(await store.remaining(checks)).toBe(1000 - 106 - reservation.held)
})

describe('a lease that is charged at the end of a window', () => {
  test.each<[Partial<Policy>, number]>([
    [{ algorithm: 'fixed-window' }, 60],
    [{ algorithm: 'fixed-window', align: 'first-request' }, 60],
    [{ algorithm: 'sliding-window-counter' }, 60],
    [{ algorithm: 'sliding-window-ring', slices: 30 }, 2],
  ])(
    'of %j dies with it, is not given back later, and the next window is whole B123 B125',
    async (more, seconds) => {
      const nodes = Array.from({ length: 10 }, () => process(10))
      const checks = checksFor({ limit: 400, window: '60s', ...more })
      const lease = { max: 10, ttlMs: 5000 }
      await pass((60 - seconds) * 1000 + (seconds - 1) * 1000)
      for (let i = 0; i < 20; i++) {
        for (const node of nodes) await take(node, checks, lease)
        await pass(10)
      }
      const drawn = nodes.reduce((sum, { held }) => sum + held, 0)
      expect(drawn).toBeGreaterThan(10)
      const edgeMs = more.align ? 60_000 : 800
      await pass(edgeMs)
      expect(nodes.reduce((sum, { held }) => sum + held, 0)).toBe(0)
      const before = await store.remaining(checks)
      await Promise.all(nodes.map((node) => node.close()))
      expect(await store.remaining(checks)).toBe(before)
      expect(
        nodes.reduce((sum, { tally }) => sum + tally.returned + tally.expired, 0),
      ).toBeGreaterThanOrEqual(drawn)
    },
  )
})

test('a process that is killed leaves its lease charged, as if spent, until it ages; one that closes gives it back to the window that was charged B125', async () => {
  const checks = checksFor({ limit: 200, window: '60s' })
  const [killed, closed] = [process(1), process(1)]
  await warmUp(killed, checks, 50)
  const stranded = killed.held
  expect(stranded).toBeGreaterThan(10)
  await warmUp(closed, checks, 20)
  await closed.close()
  expect(await store.remaining(checks)).toBe(200 - 70 - stranded)
  await pass(60_000 - 700)
  expect(await store.remaining(checks)).toBe(200)
})

test.each<[Algorithm]>([
  ['fixed-window'],
  ['sliding-window-counter'],
  ['sliding-window-ring'],
  ['token-bucket'],
  ['gcra'],
])('a lease of %s draws nothing from a key in debt, to which it gives nothing B85', async (algorithm) => {
  const large = checksFor({ algorithm, name: 'changed', limit: 10, window: '1h' })
  const small = checksFor({ algorithm, name: 'changed', limit: 5, window: '1h' })
  const other = process()
  for (let i = 0; i < 10; i++) await take(other, large)
  const [drawn] = await store.consume(small.map((check) => ({ ...check, least: 1, most: 5 })))
  expect(drawn).toMatchObject({ allowed: false, granted: 0, remaining: 0 })
  const reservation = process(1)
  expect(await take(reservation, small)).toMatchObject({ allowed: false, granted: 0 })
  expect(reservation.tally).toEqual({ charged: 0, admitted: 0, returned: 0, expired: 0 })
  expect(await take(other, large)).toMatchObject({ allowed: false })
})

test('a grant whose window ended on its way serves those for whom it was charged, and nobody who came later', async () => {
  const reservation = process(1)
  const checks = checksFor({ limit: 100, window: '60s' })
  const edgeMs = 1_800_000_060_000
  const chargedMs = new Map<string, number>()
  const ask = (name: string, cost: number, timeoutMs: number): void => {
    const priced = checks.map((check) => ({ ...check, least: cost, most: cost }))
    void reservation.consume(priced, { timeoutMs, lease: terms }).then(
      ([verdict]) => chargedMs.set(name, (verdict as Verdict).atUs / 1000 - edgeMs),
      () => chargedMs.set(name, Number.NaN),
    )
  }
  store.outMs = store.backMs = () => 15
  await pass(60_000 - 50)
  ask('opens', 1, 1000)
  await pass(20)
  ask('stays', 2, 1000)
  ask('leaves', 3, 30)
  await pass(35)
  ask('comes later', 1, 1000)
  await pass(200)
  expect(Object.fromEntries(chargedMs)).toEqual({
    opens: -35,
    leaves: Number.NaN,
    stays: -5,
    'comes later': 25,
  })
  expect(await store.remaining(checks)).toBe(99)
})

test('a grant ends with its window however long the way from the store was', async () => {
  const reservation = process(1)
  const checks = checksFor({ limit: 1000, window: '60s' })
  await pass(60_000 - 1200)
  await warmUp(reservation, checks)
  while (reservation.held > 0) await take(reservation, checks)
  store.outMs = store.backMs = () => 40
  void take(reservation, checks)
  await pass(100)
  expect(reservation.held).toBeGreaterThan(1)
  await pass(1_800_000_060_000 + 20 - Date.now())
  expect(reservation.held).toBe(0)
})
