import fc from 'fast-check'
import { isRounded } from '../../../test/models/bucket.js'
import { exactLeakyBucketModel, leakyBucketModel } from '../../../test/models/leaky-bucket.js'
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

const base = fc.record({ algorithm: fc.constant('leaky-bucket' as const), limit: limits, window: windowsMs })

/** With places for `burst`, those in the queue and the one that departs; without, with those that fit a wait. */
function withQueue(policy: Policy, burst: number | undefined): Policy {
  const { burst: places, ...queue } = withBurst(policy, burst)
  return places === undefined ? queue : { ...queue, queue: places - 1 }
}

const policy: fc.Arbitrary<Policy> = fc.tuple(base, bursts).map(([policy, burst]) => withQueue(policy, burst))
const policies = fc
  .tuple(base, fc.array(fc.tuple(limits, bursts), { minLength: 2, maxLength: 3 }))
  .map(([base, others]) => others.map(([limit, burst]) => withQueue({ ...base, limit }, burst)))
const proof = { model: leakyBucketModel, isOutside: isRounded }

test('decides 100,000 random requests, and delays them, as the model does; beyond 2^53 it never admits what the exact one refuses, and each unit of a busy spell delays the next by at most 1 us', () => {
  const { inside, outside, bounded } = proveAlone(
    { ...proof, unrounded: exactLeakyBucketModel },
    policy,
    100_000,
  )
  expect(inside).toBeGreaterThan(10_000)
  expect(outside).toBeGreaterThan(5000)
  expect(bounded).toBeGreaterThan(100)
})

test('keeps its queue in time when limit and queue change', () => {
  proveTogether({ ...proof, ownBursts: true }, policies, 20_000)
})

test('never admits more than the largest limit alone when limits alternate', () => {
  const policies = fc
    .tuple(base, fc.array(limits, { minLength: 2, maxLength: 3 }))
    .map(([base, others]) => others.map((limit) => withQueue({ ...base, limit }, limit)))
    .filter((policies) => !policies.map(numbersOf).some(isRounded))
  proveTogether(proof, policies, 20_000)
})

test('gives a place back if it is the last, and of it what has not departed, under changing limits too', () => {
  const { refunds } = proveAlone({ ...proof, refunds: 'any' }, policy, 20_000)
  expect(refunds).toBeGreaterThan(1000)
  proveTogether({ ...proof, refunds: 'any' }, policies, 10_000)
})

test('after a refund no more is free than if the place had never been taken, but for 1 us of departures', () => {
  const { refunds } = proveAlone({ ...proof, refunds: 'nested' }, policy, 20_000)
  expect(refunds).toBeGreaterThan(1000)
})

test('a refund right after its charge makes every answer what it was', () => proveUndone(policy, 10_000))

test('admits what gcra with a burst of queue + 1 admits', () => {
  fc.assert(
    fc.property(policy, moves(25), (policy, moves) => {
      const { step, rule, burst, limit, windowMs } = resolvePolicy(policy)
      const { limit: rate, window } = policy
      const other = resolvePolicy({ algorithm: 'gcra', limit: rate, window, burst })
      let states: [unknown, unknown] = [undefined, undefined]
      let nowUs = 1.8e15
      let last: Waits | undefined
      for (const move of moves) {
        nowUs = arrive(move, nowUs, last, windowMs * 1000, burst, limit)
        const cost = priceOf(move, burst, step(states[0], nowUs, 0, rule).remaining)
        const { next, delayUs, ...answer } = step(states[0], nowUs, cost, rule)
        const {
          next: otherNext,
          delayUs: none,
          ...otherAnswer
        } = other.step(states[1], nowUs, cost, other.rule)
        expect(answer).toEqual(otherAnswer)
        states = [next ?? states[0], otherNext ?? states[1]]
        last = answer
      }
    }),
    { seed: 20_260_111, numRuns: 1600 },
  )
})

test('departures are scheduled in the order of arrival, each as many intervals after the one before as it costs', () => {
  let departures = 0
  fc.assert(
    fc.property(policy, moves(25), (policy, moves) => {
      const { step, rule, burst, limit, windowMs } = resolvePolicy(policy)
      let state: unknown
      let nowUs = 1.8e15
      let last: Waits | undefined
      let departedUs = 0
      for (const move of moves) {
        nowUs = Math.max(nowUs, arrive(move, nowUs, last, windowMs * 1000, burst, limit))
        const cost = priceOf(move, burst, step(state, nowUs, 0, rule).remaining)
        const answer = step(state, nowUs, cost, rule)
        last = answer
        if (answer.next === undefined) continue
        // Both moments are rounded up to whole microseconds, so they may be closer by less than one.
        const apartUs = Number((BigInt(cost) * BigInt(windowMs * 1000)) / BigInt(limit))
        expect(nowUs + answer.delayUs - departedUs).toBeGreaterThanOrEqual(apartUs)
        departedUs = nowUs + answer.delayUs
        state = answer.next
        departures += 1
      }
    }),
    { seed: 20_260_112, numRuns: 1600 },
  )
  expect(departures).toBeGreaterThan(10_000)
})

const second = 1_000_000
const start = 1_800_000_000 * second

function queue(policy: Omit<Policy, 'algorithm'>) {
  const { step, refund, rule, burst } = resolvePolicy({ algorithm: 'leaky-bucket', ...policy })
  let state: unknown
  return {
    burst,
    ask(afterUs: number, cost = 1) {
      const answer = step(state, start + afterUs, cost, rule)
      state = answer.next ?? state
      return answer
    },
    leave(afterUs: number, units: number, atUs: number, resetUs: number): void {
      const charge = { units, atUs: start + atUs, resetUs }
      state = refund(state, start + afterUs, charge, rule) ?? state
    },
  }
}

test('the last place is given to the next who comes, one in the middle to nobody', () => {
  const { ask, leave } = queue({ limit: 1, window: '1s', queue: 5 })
  ask(0)
  const second1 = ask(0)
  const third = ask(0)
  leave(0, 1, 0, second1.resetUs)
  expect(ask(0, 0).remaining).toBe(3)
  leave(0, 1, 0, third.resetUs)
  expect(ask(0).delayUs).toBe(2 * second)
})

test('admits exactly queue + 1 of 10,000 hits at one instant B62', () => {
  const { ask } = queue({ limit: 6000, window: '1s', queue: 4999 })
  const hits = Array.from({ length: 10_000 }, () => ask(0))
  expect(hits.filter(({ allowed }) => allowed)).toHaveLength(5000)
})

test.each([
  [{ limit: 2, window: '1s' }, 11],
  [{ limit: 2, window: '1s', maxWaitMs: 0 }, 1],
  [{ limit: 2, window: '1s', maxWaitMs: 499 }, 1],
  [{ limit: 2, window: '1s', maxWaitMs: 500 }, 2],
  [{ limit: 7, window: '1m', maxWaitMs: 60_000 }, 8],
  [{ limit: 1, window: '1d' }, 1],
  [{ limit: 1e9, window: '1ms' }, 1e9],
  [{ limit: 2, window: '1s', queue: 0 }, 1],
  [{ limit: 2, window: '1s', queue: 999_999_999 }, 1e9],
])('%j has %d places, the one that departs among them', (policy, places) => {
  const { ask, burst } = queue(policy)
  expect(burst).toBe(places)
  expect(ask(0, 0).remaining).toBe(places)
  const { maxWaitMs } = policy as Policy
  const longest = ask(0, places)
  expect(longest.allowed).toBe(true)
  if (maxWaitMs !== undefined) expect(longest.delayUs).toBeLessThanOrEqual(maxWaitMs * 1000)
})

test.each([
  [{ queue: -1 }, '`queue` is -1'],
  [{ queue: 1.5 }, '`queue` is 1.5'],
  [{ queue: 1e9 }, '`queue` is 1000000000'],
  [{ queue: '5' }, '`queue` is "5"'],
  [{ queue: null }, '`queue` is null'],
  [{ maxWaitMs: -1 }, '`maxWaitMs` is -1'],
  [{ maxWaitMs: 60_001 }, '`maxWaitMs` is 60001'],
  [{ maxWaitMs: 0.5 }, '`maxWaitMs` is 0.5'],
  [{ maxWaitMs: '5s' }, '`maxWaitMs` is "5s"'],
  [{ queue: 5, maxWaitMs: 1000 }, 'either `queue` or `maxWaitMs`, not both'],
  [{ limit: 1, window: '400d', queue: 100 }, '100 years'],
])('refuses %j', (options, message) => {
  expect(() => queue({ limit: 2, window: '1s', ...options } as Policy)).toThrow(
    expect.objectContaining({ code: 'SLUICE_BAD_OPTION', message: expect.stringContaining(message) }),
  )
})
