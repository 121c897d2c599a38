import fc from 'fast-check'
import { slidingWindowRingModel } from '../../../test/models/sliding-window-ring.js'
import { limits, proveAlone, proveTogether, proveUndone, windowsMs } from '../../../test/trace.js'
import { type Policy, resolvePolicy } from '../../policy.js'

const policy: fc.Arbitrary<Policy> = fc.record({
  algorithm: fc.constant('sliding-window-ring' as const),
  limit: limits,
  window: windowsMs,
  slices: fc.constantFrom(2, 3, 7, 30, 30, 1000),
})
const isLongSlice = ({ windowUs, slices = 30n }: { windowUs: bigint; slices?: bigint }): boolean =>
  windowUs * slices > 2n ** 53n
const proof = { model: slidingWindowRingModel, isOutside: isLongSlice }
const policies = fc
  .tuple(policy, fc.array(limits, { minLength: 1, maxLength: 2 }))
  .map(([first, others]) => [first, ...others.map((limit) => ({ ...first, limit }))])

test('decides 100,000 random requests as the model does, exactly on both sides of window x slices = 2^53', () => {
  const { inside, outside } = proveAlone(proof, policy, 100_000)
  expect(inside).toBeGreaterThan(10_000)
  expect(outside).toBeGreaterThan(1000)
})

test('keeps the units used when the limit changes, and never admits more than the largest limit alone', () => {
  proveTogether(proof, policies, 20_000)
})

test('gives back to the slice that was charged, while it counts: after it no more is free than if the units had never been charged', () => {
  const { refunds } = proveAlone({ ...proof, refunds: 'exact' }, policy, 20_000)
  expect(refunds).toBeGreaterThan(1000)
  proveTogether({ ...proof, refunds: 'any' }, policies, 10_000)
})

test('a refund right after its charge makes every answer what it was', () => proveUndone(policy, 10_000))

test('admits exactly the limit of 10,000 hits at one instant B62', () => {
  const { step, rule } = resolvePolicy({ algorithm: 'sliding-window-ring', limit: 6000, window: '1s' })
  let state: unknown
  const hits = Array.from({ length: 10_000 }, () => {
    const { allowed, next } = step(state, 1.8e15, 1, rule)
    state = next ?? state
    return allowed
  })
  expect(hits.filter(Boolean)).toHaveLength(6000)
})

test.each([2, 6, 30])(
  'with %d slices serves steady traffic at slices / (slices + 1) of the limit',
  (slices) => {
    const limit = 600
    const { step, rule } = resolvePolicy({ algorithm: 'sliding-window-ring', limit, window: '1m', slices })
    let state: unknown
    let admitted = 0
    const windows = 5 * (slices + 1)
    for (let i = 0; i < windows * limit * 2; i += 1) {
      const { allowed, next } = step(state, 1.8e15 + i * 50_000, 1, rule)
      if (allowed) admitted += 1
      state = next ?? state
    }
    const share = admitted / (windows * limit)
    expect(share).toBeGreaterThanOrEqual(slices / (slices + 1))
    expect(share).toBeLessThan(1)
  },
)

describe('a state holds the newest slice and the counts up to it, from the oldest slice that is in use', () => {
  const policy = resolvePolicy({ algorithm: 'sliding-window-ring', limit: 100, window: '30s' })
  const first = 1.8e9
  const us = (slice: number): number => slice * 1e6
  const charge = (state: unknown, slice: number, cost = 1): unknown =>
    Object.freeze(policy.step(state, us(slice), cost, policy.rule).next)
  const refund = (state: unknown, slice: number, units: number, of: number): unknown => {
    const resetUs = us(of + 31) - us(of)
    return Object.freeze(policy.refund(state, us(slice), { units, atUs: us(of), resetUs }, policy.rule))
  }
  /** Charges in slices after the first one, 1 unit in the first of them, 2 in the second and so on. */
  const charged = (...slices: number[]): unknown =>
    slices.reduce<unknown>((state, slice, i) => charge(state, first + slice, i + 1), undefined)

  test.each<[string, unknown, readonly [slice: number, ...counts: number[]]]>([
    ['one for a key that was used once', charged(0), [0, 1]],
    ['one for a key that was used in one slice', charged(0, 0, 0), [0, 6]],
    ['the slices between', charged(0, 1, 4), [4, 1, 2, 0, 0, 3]],
    ['all slices of a window and the one before', charged(0, 30), [30, 1, ...Array(29).fill(0), 2]],
    ['one once all others are over', charged(0, 1, 4, 100), [100, 4]],
    ['none of a slice that is over', charged(0, 31), [31, 2]],
    ['none of empty slices before the oldest', charged(0, 3, 31), [31, 2, ...Array(27).fill(0), 3]],
    ['the newest of a clock that stepped back', charged(10, 4), [10, 3]],
    ['one for a clock that stepped back by more than a window', charged(100, 4), [4, 2]],
    ['less of a slice', refund(charged(0, 1), first + 1, 1, first + 1), [1, 1, 1]],
    ['none of an oldest slice that was given back', refund(charged(0, 5), first + 5, 1, first), [5, 2]],
    ['a newest slice that was given back', refund(charged(0, 1), first + 1, 2, first + 1), [1, 1, 0]],
    ['zeros up to a refund', refund(charged(0, 1), first + 3, 1, first), [3, 2, 0, 0]],
    ['a zero when all is given back', refund(charged(0), first + 9, 1, first), [9, 0]],
    ['one after all was given back', charge(refund(charged(0), first, 1, first), first + 9), [9, 1]],
  ])('%s', (_, state, [slice, ...counts]) => {
    expect(state).toEqual([first + slice, ...counts])
  })

  test('a refund of nothing that counts changes nothing', () => {
    expect(refund(charged(0), first + 31, 1, first)).toBeUndefined()
    expect(refund(charged(5), first + 5, 1, first + 4)).toBeUndefined()
    expect(refund(charged(5), first + 5, 1, first + 6)).toBeUndefined()
    expect(refund(undefined, first, 1, first)).toBeUndefined()
  })
})

test.each([1, 0, -2, 1001, 2.5, '30', Number.NaN, null])('refuses %p slices', (slices) => {
  const policy = {
    algorithm: 'sliding-window-ring' as const,
    limit: 10,
    window: '1m',
    slices: slices as number,
  }
  expect(() => resolvePolicy(policy)).toThrow(
    expect.objectContaining({ code: 'SLUICE_BAD_OPTION', message: expect.stringContaining('`slices`') }),
  )
})

test('takes up to 1000 slices of a window of one millisecond, one a microsecond', () => {
  const policy = { algorithm: 'sliding-window-ring' as const, limit: 10, window: '1ms', slices: 1000 }
  expect(() => resolvePolicy(policy)).not.toThrow()
})
