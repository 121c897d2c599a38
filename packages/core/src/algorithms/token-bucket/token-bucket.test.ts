import fc from 'fast-check'
import { isRounded } from '../../../test/models/bucket.js'
import { exactTokenBucketModel, tokenBucketModel } from '../../../test/models/token-bucket.js'
import {
  bursts,
  limits,
  proveAlone,
  proveTogether,
  proveUndone,
  windowsMs,
  withBurst,
} from '../../../test/trace.js'
import { type Policy, resolvePolicy } from '../../policy.js'

const base = fc.record({ algorithm: fc.constant('token-bucket' as const), limit: limits, window: windowsMs })
const policy: fc.Arbitrary<Policy> = fc.tuple(base, bursts).map(([policy, burst]) => withBurst(policy, burst))
const proof = { model: tokenBucketModel, isOutside: isRounded }

test('decides 100,000 random requests as the model does; beyond 2^53 it never admits what the exact one refuses, and each unit of a busy spell delays the next by at most 1 us', () => {
  const { inside, outside, bounded } = proveAlone(
    { ...proof, unrounded: exactTokenBucketModel },
    policy,
    100_000,
  )
  expect(inside).toBeGreaterThan(10_000)
  expect(outside).toBeGreaterThan(10_000)
  expect(bounded).toBeGreaterThan(200)
})

test('keeps its whole tokens when limit and burst change', () => {
  const policies = fc
    .tuple(base, fc.array(fc.tuple(limits, bursts), { minLength: 2, maxLength: 3 }))
    .map(([base, others]) => others.map(([limit, burst]) => withBurst({ ...base, limit }, burst)))
  proveTogether({ ...proof, ownBursts: true }, policies, 20_000)
})

test('never admits more than the largest limit alone, unrounded, when limits alternate', () => {
  const policies = fc
    .tuple(base, fc.array(limits, { minLength: 2, maxLength: 3 }))
    .map(([base, others]) => others.map((limit) => ({ ...base, limit })))
  proveTogether({ ...proof, byLargest: exactTokenBucketModel }, policies, 20_000)
})

test('gives back of a charge what is still owed of it, under changing limits too, and never above full', () => {
  const { refunds } = proveAlone({ ...proof, refunds: 'any' }, policy, 20_000)
  expect(refunds).toBeGreaterThan(1000)
  const policies = fc
    .tuple(base, fc.array(fc.tuple(limits, bursts), { minLength: 2, maxLength: 3 }))
    .map(([base, others]) => others.map(([limit, burst]) => withBurst({ ...base, limit }, burst)))
  proveTogether({ ...proof, refunds: 'any' }, policies, 10_000)
})

test('after a refund no more is free than if the units had never been charged, but for 1 us of refill', () => {
  const { refunds } = proveAlone({ ...proof, refunds: 'nested' }, policy, 20_000)
  expect(refunds).toBeGreaterThan(1000)
})

test('a refund right after its charge makes every answer what it was', () => proveUndone(policy, 10_000))

const second = 1_000_000
const start = 1_800_000_000 * second

function bucket(policy: Policy, startUs = start) {
  const { step, rule } = resolvePolicy({ algorithm: 'token-bucket', ...policy })
  let state: unknown
  return (afterUs: number, cost = 1) => {
    const answer = step(state, startUs + afterUs, cost, rule)
    state = answer.next ?? state
    return answer
  }
}

const admitted = (ask: ReturnType<typeof bucket>, afterUs: number, hits: number): number =>
  Array.from({ length: hits }, () => ask(afterUs)).filter(({ allowed }) => allowed).length

test('idle time at capacity buys no second burst B73', () => {
  const ask = bucket({ limit: 10, window: '1s', burst: 10 })
  ask(0, 10)
  ask(2 * second, 0)
  expect(admitted(ask, 60 * second, 20)).toBe(10)
})

test('a denied cost takes nothing B68', () => {
  const ask = bucket({ limit: 1, window: '1s', burst: 10 })
  ask(0, 8)
  expect(ask(0, 5)).toMatchObject({ allowed: false, remaining: 2, retryUs: 3 * second })
  expect(ask(0, 1_000_000)).toMatchObject({ allowed: false, remaining: 2, retryUs: -1 })
  expect(ask(0)).toMatchObject({ allowed: true, remaining: 1, resetUs: 9 * second })
})

test('refills by its rate, not as a whole after one interval B81', () => {
  const ask = bucket({ limit: 1, window: '10s', burst: 10 })
  expect(admitted(ask, 0, 10)).toBe(10)
  expect(admitted(ask, 11 * second, 10)).toBe(1)
})

test.each([
  ['a million a second', { limit: 1_000_000, window: '1s' }],
  ['10^9 in 30 days', { limit: 1e9, window: '30d' }],
  ['10^9 in 400 days', { limit: 1e9, window: '400d' }],
  ['an odd number in 30 days', { limit: 999_999_937, window: '30d' }],
] as const)(
  'is full and whole after years of silence, up to the last exact microsecond: %s B77',
  (_, policy) => {
    for (const startUs of [0, start, 2 ** 53 - 2 ** 51]) {
      const ask = bucket(policy, startUs)
      ask(0, policy.limit)
      expect(ask(2 ** 51 - 1, policy.limit)).toMatchObject({ allowed: true, remaining: 0 })
    }
  },
)

test.each([
  ['6000 a second', { limit: 6000, window: '1s' }],
  ['60,001 a minute, in a bucket of 7', { limit: 60_001, window: '1m', burst: 7 }],
  ['10^9 in 400 days, in a bucket of 9999', { limit: 1e9, window: '400d', burst: 9999 }],
] as const)('admits exactly its burst of 10,000 hits at one instant: %s B62', (_, policy) => {
  const ask = bucket(policy)
  expect(admitted(ask, 0, 10_000)).toBe('burst' in policy ? policy.burst : policy.limit)
})

test.each([0, -1, 1.5, 1e9 + 1, Number.NaN, Number.POSITIVE_INFINITY, '10', 10n, null])(
  'refuses a burst of %p B84, B146',
  (burst) => {
    expect(() => bucket({ limit: 10, window: '1s', burst: burst as number })).toThrow(
      expect.objectContaining({ code: 'SLUICE_BAD_OPTION', message: expect.stringContaining('`burst`') }),
    )
  },
)

test('refuses a burst that takes more than 100 years to fill', () => {
  const atMost = (100 * 365.25) / 400
  expect(() => bucket({ limit: 1, window: '400d', burst: Math.floor(atMost) })).not.toThrow()
  expect(() => bucket({ limit: 25_041, window: '1d', burst: 25_041 * 36_525 })).not.toThrow()
  expect(() => bucket({ limit: 1, window: '400d', burst: Math.ceil(atMost) })).toThrow(
    expect.objectContaining({ code: 'SLUICE_BAD_OPTION', message: expect.stringContaining('100 years') }),
  )
})
