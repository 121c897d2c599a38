import fc from 'fast-check'
import { isRounded } from '../../../test/models/bucket.js'
import { exactGcraModel, gcraModel } from '../../../test/models/gcra.js'
import {
  arrive,
  bursts,
  limits,
  moves,
  numbersOf,
  priceOf,
  proveAlone,
  proveTogether,
  proveUndone,
  type Waits,
  windowsMs,
  withBurst,
} from '../../../test/trace.js'
import { type Policy, resolvePolicy } from '../../policy.js'

const base = fc.record({ algorithm: fc.constant('gcra' as const), limit: limits, window: windowsMs })
const policy: fc.Arbitrary<Policy> = fc.tuple(base, bursts).map(([policy, burst]) => withBurst(policy, burst))
const proof = { model: gcraModel, isOutside: isRounded }

test('decides 100,000 random requests as the model does; beyond 2^53 it never admits what the exact one refuses, and each unit of a busy spell delays the next by at most 1 us', () => {
  const { inside, outside, bounded } = proveAlone({ ...proof, unrounded: exactGcraModel }, policy, 100_000)
  expect(inside).toBeGreaterThan(10_000)
  expect(outside).toBeGreaterThan(10_000)
  expect(bounded).toBeGreaterThan(200)
})

test('keeps its debt in time when limit and burst change', () => {
  const policies = fc
    .tuple(base, fc.array(fc.tuple(limits, bursts), { minLength: 2, maxLength: 3 }))
    .map(([base, others]) => others.map(([limit, burst]) => withBurst({ ...base, limit }, burst)))
  proveTogether({ ...proof, ownBursts: true }, policies, 20_000)
})

// Rounding gives each limit a time to fill of its own, and a debt is kept in time: within the exact region only.
test('never admits more than the largest limit alone when limits alternate', () => {
  const policies = fc
    .tuple(base, fc.array(limits, { minLength: 2, maxLength: 3 }))
    .map(([base, others]) => others.map((limit) => ({ ...base, limit })))
    .filter((policies) => !policies.map(numbersOf).some(isRounded))
  proveTogether(proof, policies, 20_000)
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

test('answers as the token bucket of the same numbers while the clock does not go back', () => {
  let decisions = 0
  fc.assert(
    fc.property(policy, moves(25), (policy, moves) => {
      const { step, rule, burst, limit, windowMs } = resolvePolicy(policy)
      const other = resolvePolicy({ ...policy, algorithm: 'token-bucket' })
      const windowUs = windowMs * 1000
      let states: [unknown, unknown] = [undefined, undefined]
      let nowUs = 1.8e15
      let last: Waits | undefined
      for (const move of moves) {
        nowUs = Math.max(nowUs, arrive(move, nowUs, last, windowUs, burst, limit))
        const cost = priceOf(move, burst, step(states[0], nowUs, 0, rule).remaining)
        const { next, ...answer } = step(states[0], nowUs, cost, rule)
        const { next: otherNext, ...otherAnswer } = other.step(states[1], nowUs, cost, other.rule)
        expect(answer).toEqual(otherAnswer)
        states = [next ?? states[0], otherNext ?? states[1]]
        last = answer
        decisions += 1
      }
    }),
    { seed: 20_260_106, numRuns: 1600 },
  )
  expect(decisions).toBe(40_000)
})

const start = 1_800_000_000_000_000

function limiter(policy: Policy) {
  const { step, rule } = resolvePolicy({ algorithm: 'gcra', ...policy })
  let state: unknown
  return (afterUs: number, cost = 1) => {
    const answer = step(state, start + afterUs, cost, rule)
    state = answer.next ?? state
    return answer
  }
}

const admitted = (ask: ReturnType<typeof limiter>, hits: number, everyUs: number): number =>
  Array.from({ length: hits }, (_, i) => ask(Math.floor(i * everyUs))).filter(({ allowed }) => allowed).length

test.each([
  [6000, '1s', 6001, 6000],
  [2000, '1s', 1, 2000],
  [1000, '1m', 1001, 1000 / 60],
  [100_000, '1s', 5000, 100_000],
] as const)(
  '%d per %s admits exactly its burst of %d at one instant, then its rate B79',
  (limit, window, burst, perSecond) => {
    expect(admitted(limiter({ limit, window, burst }), 10_000, 0)).toBe(burst)
    const ask = limiter({ limit, window, burst })
    const hits = Math.round(Math.min(50_000, perSecond * 10))
    const spanUs = (hits * 1_000_000) / (2 * perSecond)
    ask(0, burst)
    const nominal = hits / 2
    expect(Math.abs(admitted(ask, hits, spanUs / hits) - nominal)).toBeLessThanOrEqual(
      Math.max(1, nominal / 100),
    )
  },
)

test('a step back of the clock makes it stricter by the length of the step, and retry says so', () => {
  const ask = limiter({ limit: 10, window: '10s' })
  ask(0, 10)
  const denied = ask(-5_000_000)
  expect(denied).toMatchObject({ allowed: false, remaining: 0, retryUs: 6_000_000, resetUs: 15_000_000 })
  expect(ask(999_999).allowed).toBe(false)
  expect(ask(1_000_000).allowed).toBe(true)
})

test('a smaller burst in between does not free the debt of a larger one', () => {
  const large = resolvePolicy({ algorithm: 'gcra', limit: 10, window: '1s', burst: 100 })
  const small = resolvePolicy({ algorithm: 'gcra', limit: 10, window: '1s', burst: 1 })
  const { next } = large.step(undefined, start, 100, large.rule)
  expect(small.step(next, start, 1, small.rule)).toMatchObject({ allowed: false, retryUs: 10_000_000 })
})

test('a remainder of another limit is rounded up into the debt', () => {
  const sevenths = resolvePolicy({ algorithm: 'gcra', limit: 7, window: '1m', burst: 1 })
  const thirds = resolvePolicy({ algorithm: 'gcra', limit: 9, window: '1m', burst: 1 })
  const { next } = sevenths.step(undefined, start, 1, sevenths.rule)
  expect(sevenths.step(next, start, 1, sevenths.rule).retryUs).toBe(8_571_429)
  expect(thirds.step(next, start, 0, thirds.rule).resetUs).toBe(8_571_429)
  expect(thirds.step(next, start + 8_571_428, 1, thirds.rule).allowed).toBe(false)
})
