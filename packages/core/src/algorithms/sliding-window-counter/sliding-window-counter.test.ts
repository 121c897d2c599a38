import fc from 'fast-check'
import { slidingWindowCounterModel } from '../../../test/models/sliding-window-counter.js'
import {
  isLongProduct,
  limits,
  proveAlone,
  proveTogether,
  proveUndone,
  windowsMs,
} from '../../../test/trace.js'
import { type Policy, resolvePolicy } from '../../policy.js'

const policy: fc.Arbitrary<Policy> = fc.record({
  algorithm: fc.constant('sliding-window-counter' as const),
  limit: limits,
  window: windowsMs,
})
const proof = { model: slidingWindowCounterModel, isOutside: isLongProduct }

test('decides 100,000 random requests as the model does, exactly on both sides of limit x window = 2^53', () => {
  const { inside, outside } = proveAlone(proof, policy, 100_000)
  expect(inside).toBeGreaterThan(10_000)
  expect(outside).toBeGreaterThan(10_000)
})

test('keeps the units used when the limit changes, and never admits more than the largest limit alone', () => {
  const policies = fc
    .tuple(policy, fc.array(limits, { minLength: 1, maxLength: 2 }))
    .map(([first, others]) => [first, ...others.map((limit) => ({ ...first, limit }))])
  proveTogether(proof, policies, 20_000)
})

test('gives back to the window that was charged, while it counts: after it no more is free than if the units had never been charged', () => {
  const { refunds } = proveAlone({ ...proof, refunds: 'exact' }, policy, 20_000)
  expect(refunds).toBeGreaterThan(1000)
})

test('a refund right after its charge makes every answer what it was', () => proveUndone(policy, 10_000))

const minute = 60_000_000
const start = 30_000_000 * minute

function trace(limit: number, requests: readonly (readonly [atUs: number, cost: number])[]) {
  const { step, rule } = resolvePolicy({ algorithm: 'sliding-window-counter', limit, window: '1m' })
  let state: unknown
  return requests.map(([atUs, cost]) => {
    const answer = step(state, start + atUs, cost, rule)
    state = answer.next ?? state
    return answer
  })
}

test('counts the previous window by the share that still overlaps, in remaining too B70', () => {
  const later = minute + minute / 10
  const [, carried, refused, fitting] = trace(100, [
    [0, 50],
    [later, 10],
    [later, 46],
    [later, 45],
  ])
  expect(carried).toMatchObject({ allowed: true, remaining: 45 })
  expect(refused?.allowed).toBe(false)
  expect(fitting).toMatchObject({ allowed: true, remaining: 0 })
})

test('a smaller limit in between does not forget units of the previous window for a larger one', () => {
  const requestsOf = (limit: number) =>
    resolvePolicy({ algorithm: 'sliding-window-counter', limit, window: '1m' })
  const large = requestsOf(100)
  const small = requestsOf(10)
  const half = start + minute * 1.5
  const first = large.step(undefined, start, 100, large.rule)
  const second = small.step(first.next, half, 1, small.rule)
  expect(second.allowed).toBe(true)
  expect(large.step(second.next, half, 0, large.rule).remaining).toBe(49)
})

test('admits exactly the limit of 10,000 hits at one instant B62', () => {
  const hits = trace(
    6000,
    Array.from({ length: 10_000 }, () => [0, 1] as const),
  )
  expect(hits.filter(({ allowed }) => allowed)).toHaveLength(6000)
})
