import fc from 'fast-check'
import { slidingWindowLogModel } from '../../../test/models/sliding-window-log.js'
import { limits, proveAlone, proveTogether, proveUndone, windowsMs } from '../../../test/trace.js'
import { type Policy, resolvePolicy } from '../../policy.js'

const logLimits = limits.map((limit) => 1 + ((limit - 1) % 100_000))
const policy: fc.Arbitrary<Policy> = fc.record({
  algorithm: fc.constant('sliding-window-log' as const),
  limit: logLimits,
  window: windowsMs,
})
const proof = { model: slidingWindowLogModel }
const policies = fc
  .tuple(policy, fc.array(logLimits, { minLength: 1, maxLength: 2 }))
  .map(([first, others]) => [first, ...others.map((limit) => ({ ...first, limit }))])

test('decides 100,000 random requests as the model does', () => {
  proveAlone(proof, policy, 100_000)
})

test('keeps the units used when the limit changes, and never admits more than the largest limit alone', () => {
  proveTogether(proof, policies, 20_000)
})

test('takes what is given back out of its own entry: after it no more is free than if the units had never been charged', () => {
  const { refunds } = proveAlone({ ...proof, refunds: 'exact' }, policy, 20_000)
  expect(refunds).toBeGreaterThan(1000)
  proveTogether({ ...proof, refunds: 'any' }, policies, 10_000)
})

test('a refund right after its charge makes every answer what it was', () => proveUndone(policy, 10_000))

const second = 1_000_000
const start = 1_800_000_000 * second

function log(policy: Omit<Policy, 'algorithm'>) {
  const { step, refund, rule } = resolvePolicy({ algorithm: 'sliding-window-log', ...policy })
  let state: unknown
  return {
    ask(afterUs: number, cost = 1) {
      const answer = step(state, start + afterUs, cost, rule)
      state = answer.next ?? state
      return answer
    },
    /** A step that comes to nothing, as that of a group in which another policy denies. */
    tryOut: (afterUs: number, cost = 1) => step(state, start + afterUs, cost, rule).allowed,
    giveBack(afterUs: number, units: number, atUs: number, resetUs: number): void {
      const charge = { units, atUs: start + atUs, resetUs }
      state = refund(state, start + afterUs, charge, rule) ?? state
    },
  }
}

test('equal times never collapse, and costs count in full B64', () => {
  const { ask } = log({ limit: 5, window: '10s' })
  const hits = [...Array.from({ length: 8 }, () => ask(0)), ask(0, 2), ask(0, 2), ask(0, 2)]
  expect(hits.map(({ allowed }) => allowed)).toEqual([...Array(5).fill(true), ...Array(6).fill(false)])
})

test.each([
  ['a millisecond after', 10_001_000, true],
  ['exactly at', 10_000_000, true],
  ['a microsecond before', 9_999_999, false],
])('an entry stops counting a window after its time: %s that B66', (_, afterUs, allowed) => {
  const { ask } = log({ limit: 2, window: '10s' })
  ask(0)
  ask(second)
  expect(ask(afterUs).allowed).toBe(allowed)
})

test('a denial waits for the oldest hit to age out and starts no window of its own B89', () => {
  const { ask } = log({ limit: 10, window: '10s' })
  for (let hit = 0; hit < 10; hit += 1) ask(hit * second)
  expect(ask(9.5 * second)).toMatchObject({ allowed: false, retryUs: 0.5 * second })
  expect(ask(10.1 * second).allowed).toBe(true)
})

test('admits exactly the limit of 10,000 hits at one instant B62', () => {
  const { ask } = log({ limit: 6000, window: '1s' })
  const hits = Array.from({ length: 10_000 }, () => ask(0))
  expect(hits.filter(({ allowed }) => allowed)).toHaveLength(6000)
})

test.each([
  ['whose places are all taken', [0, 1, 2, 3], 10 * second + 1],
  ['with entries far ahead of the clock', [30 * second, 30 * second, 30 * second], 1],
])('a step that comes to nothing leaves a log %s as it was', (_, times, tried) => {
  const { ask, tryOut } = log({ limit: 4, window: '10s' })
  for (const at of times) ask(at)
  const answers = () =>
    [0, 1, 10 * second, 25 * second, 35 * second].map((at) => [1, 2].map((cost) => tryOut(at, cost)))
  const before = answers()
  expect(tryOut(tried)).toBe(true)
  expect(answers()).toEqual(before)
})

test('units of one moment are given back in full, whichever of its charges they came from', () => {
  const { ask, giveBack } = log({ limit: 10, window: '10s' })
  const three = ask(0, 3)
  const two = ask(0, 2)
  ask(second, 4)
  giveBack(2 * second, 2, 0, two.resetUs)
  expect(ask(2 * second, 0).remaining).toBe(3)
  giveBack(2 * second, 3, 0, three.resetUs)
  expect(ask(2 * second, 0)).toMatchObject({ remaining: 6, replenishUs: 9 * second })
})

test('is served for years by arrays that grow with what it holds and no further', () => {
  const { step, rule } = resolvePolicy({ algorithm: 'sliding-window-log', limit: 100_000, window: '1ms' })
  let state: unknown
  let longest = 0
  // Sums pass 2^32 on the way.
  for (let i = 0; i < 100_000; i += 1) {
    const { allowed, remaining, next } = step(state, start + i * 10, 1000, rule)
    if (!allowed || remaining !== Math.max(0, 99_000 - Math.min(i, 99) * 1000)) throw new Error(`At ${i}`)
    state = next
    longest = Math.max(longest, (next as { times: Float64Array }).times.length)
  }
  expect(longest).toBeLessThanOrEqual(256)
})

test('refuses a limit above 100,000 and names the ring', () => {
  expect(() => log({ limit: 100_000, window: '1s' })).not.toThrow()
  expect(() => log({ limit: 100_001, window: '1s' })).toThrow(
    expect.objectContaining({
      code: 'SLUICE_BAD_OPTION',
      message: expect.stringMatching(/`limit` is 100001.*100,000.*sliding-window-ring/),
    }),
  )
})
