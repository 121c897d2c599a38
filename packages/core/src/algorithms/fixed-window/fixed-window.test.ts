import fc from 'fast-check'
import { fixedWindowModel } from '../../../test/models/fixed-window.js'
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
  algorithm: fc.constant('fixed-window' as const),
  limit: limits,
  window: windowsMs,
  align: fc.constantFrom('epoch' as const, 'first-request' as const),
})
const proof = { model: fixedWindowModel, isOutside: isLongProduct }

test('decides 100,000 random requests as the model does, however large limit x window is', () => {
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

test('gives back to the window that was charged, while it lasts, and never above full', () => {
  const { refunds } = proveAlone({ ...proof, refunds: 'any' }, policy, 20_000)
  expect(refunds).toBeGreaterThan(1000)
})

test('after a refund no more is free than if the units had never been charged', () => {
  const aligned = policy.map((policy) => ({ ...policy, align: 'epoch' as const }))
  const { refunds } = proveAlone({ ...proof, refunds: 'exact' }, aligned, 20_000)
  expect(refunds).toBeGreaterThan(1000)
})

test('a refund right after its charge makes every answer what it was', () => proveUndone(policy, 10_000))

describe('windows', () => {
  const from = (policy: Policy, times: readonly number[]): boolean[] => {
    const { step, rule } = resolvePolicy({ algorithm: 'fixed-window', ...policy })
    let state: unknown
    return times.map((ms) => {
      const { allowed, next } = step(state, ms * 1000, 1, rule)
      state = next ?? state
      return allowed
    })
  }

  test.each([
    ['epoch', [59_999, 60_000, 119_999, 120_000], [true, true, false, true]],
    ['first-request', [59_999, 60_000, 119_998, 119_999], [true, false, false, true]],
  ] as const)(
    'aligned to %s are half-open: their end is the first moment of the next B66',
    (align, times, expected) => {
      expect(from({ limit: 1, window: '1m', align }, times)).toEqual(expected)
    },
  )

  test('admit exactly the limit of 10,000 hits at one instant B62', () => {
    const hits = from(
      { limit: 6000, window: '1s' },
      Array.from({ length: 10_000 }, () => 1_800_000_000_000),
    )
    expect(hits.filter(Boolean)).toHaveLength(6000)
  })

  test.each([
    ['one window ahead is kept', 60_000_000, false],
    ['further ahead counts as none', 59_999_999, true],
  ])('whose start lies %s after a step back of the clock B75', (_, nowUs, allowed) => {
    const { step, rule } = resolvePolicy({ algorithm: 'fixed-window', limit: 1, window: '1m' })
    const { next } = step(undefined, 120_000_000, 1, rule)
    expect(step(next, nowUs, 1, rule).allowed).toBe(allowed)
  })
})
