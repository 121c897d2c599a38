import fc from 'fast-check'
import {
  arrive,
  bursts,
  limits,
  type Move,
  moves,
  priceOf,
  shares,
  type Waits,
  windowsMs,
  withBurst,
} from '../../testing/src/trace.js'
import type { Step } from '../src/algorithms/algorithm.js'
import { type Policy, resolvePolicy } from '../src/policy.js'
import type { Charge, Model, Numbers, Refund } from './models/model.js'

export { arrive, bursts, limits, type Move, moves, priceOf, shares, type Waits, windowsMs, withBurst }

/** How many times as many traces as usual the properties run through: `npm run test:deep`. */
const scale = Number(process.env.SLUICE_TEST_SCALE ?? 1)
const movesPerTrace = 25
const firstUs = 1.8e15

export function numbersOf(policy: Policy): Numbers {
  const { limit, windowMs, burst } = resolvePolicy(policy)
  const { align, slices = 30 } = policy
  return {
    limit: BigInt(limit),
    windowUs: BigInt(windowMs * 1000),
    burst: BigInt(burst),
    aligned: align !== 'first-request',
    slices: BigInt(slices),
  }
}

/** How many decisions a property made on each side of a line. */
export interface Tally {
  inside: number
  outside: number
  /** Comparisons with the unrounded model that bound a wait. */
  bounded: number
  /** Refunds that gave something back. */
  refunds: number
}

export interface Proof {
  readonly model: Model
  /** The model without rounding, to bound the decisions of rounded policies. */
  readonly unrounded?: Model
  /** Whether these numbers lie beyond the line of 2^53. */
  readonly isOutside?: (numbers: Numbers) => boolean
  /**
   * Mixes in refunds. `exact`: and proves that never more is free than if the units had not been charged at all.
   * `nested`: the same but for one microsecond of refill, of refunds that come after those of all later charges.
   */
  readonly refunds?: 'any' | 'exact' | 'nested'
}

interface Trace extends Proof {
  readonly policies: readonly Policy[]
  readonly moves: readonly Move[]
  readonly tally: Tally
  /** Told of every charge. */
  readonly onCharge?: (charge: Charge) => void
}

/** A charge that can be given back, and what it was answered with. */
interface Held {
  readonly charge: Charge
  readonly atUs: number
  readonly resetUs: number
  readonly policy: number
}

function claim(holds: boolean, what: string, ...evidence: unknown[]): void {
  if (holds) return
  const shown = evidence.map((value) =>
    JSON.stringify(value, (_, inner) => (typeof inner === 'bigint' ? `${inner}` : inner)),
  )
  throw new Error(`${what}: ${shown.join(' ')}`)
}

/** Runs a trace through the step and proves every answer by what the model says at the moments that it names. */
function prove({ policies, model, unrounded, moves, isOutside, refunds, tally, onCharge }: Trace): void {
  const rules = policies.map((policy) => ({ ...resolvePolicy(policy), numbers: numbersOf(policy) }))
  const history: (Charge | Refund)[] = []
  let held: Held[] = []
  /** The history without the units that were given back. */
  let never: Charge[] = []
  let state: unknown
  let last: Step | undefined
  let nowUs = firstUs
  let busyUnits = 0n
  let clockWentBack = false

  const giveBack = (move: Move): void => {
    const at = Math.ceil((1 - move.portion ** 2) * held.length) - 1
    const { charge, atUs, resetUs, policy } = held[at] as Held
    const { refund, rule } = rules[policy] as (typeof rules)[number]
    const all = Number(charge.cost)
    const units = move.jitter === 0 ? 1 + Math.floor(move.share * (all - 1)) : all
    const next = refund(state, nowUs, { units, atUs, resetUs }, rule)
    // Once a charge is given back, those after it are paid earlier than they were told.
    held = refunds === 'nested' ? held.slice(0, at) : held.toSpliced(at, 1)
    history.push({ at: BigInt(nowUs), units: BigInt(units), of: charge })
    if (next === undefined) return
    state = next
    tally.refunds += 1
    never = never.map((other) =>
      other === charge ? { ...charge, cost: charge.cost - BigInt(units) } : other,
    )
  }

  for (const move of moves) {
    const index = move.policy % rules.length
    const { step, rule, limit, burst, windowMs, numbers } = rules[index] as (typeof rules)[number]
    const windowUs = windowMs * 1000
    const thenUs = arrive(move, nowUs, last, windowUs, burst, limit)
    if (thenUs < nowUs) clockWentBack = true
    nowUs = thenUs
    if (refunds && move.policy >= 60 && held.length > 0) giveBack(move)
    const now = BigInt(nowUs)
    const remainingAt = (afterUs: number): bigint => model(history, now + BigInt(afterUs), numbers).remaining
    const standing = model(history, now, numbers)
    const { remaining: before, whole } = standing
    const cost = priceOf(move, burst, Number(before))
    const answer = step(state, nowUs, cost, rule)
    const evidence = { policy: policies[index], nowUs, cost, state, answer, history }

    claim(answer.allowed === BigInt(cost) <= before, 'allowed', before, evidence)
    claim((answer.next !== undefined) === (answer.allowed && cost > 0), 'next state', evidence)
    if ((refunds === 'exact' || refunds === 'nested') && !clockWentBack) {
      const later = model(never, now + (refunds === 'nested' ? 1n : 0n), numbers).remaining
      claim(before <= later, 'more is free than if the units had never been charged', later, evidence)
    }
    const outside = isOutside?.(numbers) ?? false
    if (unrounded && outside && !clockWentBack) {
      const free = (afterUs: bigint): bigint => unrounded(history, now + afterUs, numbers).remaining
      claim(!answer.allowed || BigInt(cost) <= free(0n), 'admitted what the exact model refuses', evidence)
      // Each unit is paid off at most 1 us later than exactly, and debts add up until the key is whole again.
      const earlier = BigInt(answer.retryUs) - 1n - busyUnits
      if (earlier >= 0n) {
        tally.bounded += 1
        claim(BigInt(cost) > free(earlier), 'refused for too long', evidence)
      }
    }
    if (answer.next !== undefined) {
      const charge = { at: now, cost: BigInt(cost), numbers }
      history.push(charge)
      never.push(charge)
      held.push({ charge, atUs: nowUs, resetUs: answer.resetUs, policy: index })
      onCharge?.(charge)
      busyUnits = (whole ? 0n : busyUnits) + charge.cost
      state = answer.next
    }

    const after = model(history, now, numbers)
    claim(BigInt(answer.remaining) === after.remaining, 'remaining', after, evidence)
    if (answer.allowed || cost > burst) {
      claim(answer.retryUs === (answer.allowed ? 0 : -1), 'retry', evidence)
    } else {
      claim(answer.retryUs > 0 && remainingAt(answer.retryUs) >= BigInt(cost), 'retry too early', evidence)
      claim(remainingAt(answer.retryUs - 1) < BigInt(cost), 'retry too late', evidence)
    }
    if (answer.remaining === burst) {
      claim(answer.replenishUs === 0, 'replenish', evidence)
    } else {
      claim(
        answer.replenishUs > 0 && remainingAt(answer.replenishUs) > after.remaining,
        'replenish too early',
        evidence,
      )
      claim(remainingAt(answer.replenishUs - 1) <= after.remaining, 'replenish too late', evidence)
    }
    const wholeAt = (afterUs: number): boolean => model(history, now + BigInt(afterUs), numbers).whole
    claim(answer.resetUs >= 0 && wholeAt(answer.resetUs), 'reset too early', evidence)
    claim(answer.resetUs === 0 || !wholeAt(answer.resetUs - 1), 'reset too late', evidence)
    const delay = answer.next === undefined ? 0n : (standing.delay?.(BigInt(cost)) ?? 0n)
    claim(BigInt(answer.delayUs) === delay, 'delay', delay, evidence)

    tally[outside ? 'outside' : 'inside'] += 1
    last = answer
  }
}

/** Whether limit x window passes 2^53. */
export const isLongProduct = ({ limit, windowUs }: Numbers): boolean => limit * windowUs > 2n ** 53n

/** Proves traces of one policy each, `decisions` in all, and says how many fell on each side. */
export function proveAlone(proof: Proof, policy: fc.Arbitrary<Policy>, decisions: number): Tally {
  const tally: Tally = { inside: 0, outside: 0, bounded: 0, refunds: 0 }
  fc.assert(
    fc.property(policy, moves(movesPerTrace), (policy, moves) =>
      prove({ ...proof, policies: [policy], moves, tally }),
    ),
    { seed: 20_260_101, numRuns: (scale * decisions) / movesPerTrace },
  )
  expect(tally.inside + tally.outside).toBe(scale * decisions)
  return tally
}

/**
 * Proves traces in which several policies of one algorithm and window share a key, `decisions` in all; and, unless they
 * have bursts of their own or refunds, that no such trace admits what the largest limit alone would refuse, counted by
 * the model `byLargest`.
 */
export function proveTogether(
  proof: Proof & { readonly ownBursts?: boolean; readonly byLargest?: Model },
  policies: fc.Arbitrary<Policy[]>,
  decisions: number,
): void {
  const { byLargest = proof.model } = proof
  fc.assert(
    fc.property(policies, moves(movesPerTrace), (policies, moves) => {
      const largest = policies.map(numbersOf).reduce((a, b) => (b.limit > a.limit ? b : a))
      const alone: Charge[] = []
      let latest = 0n
      prove({
        ...proof,
        policies,
        moves,
        tally: { inside: 0, outside: 0, bounded: 0, refunds: 0 },
        onCharge: (charge) => {
          // A clock that goes back may free a limit once, for one policy and not for another.
          if (charge.at < latest) latest = 2n ** 63n
          else latest = charge.at
          if (latest === charge.at && !proof.ownBursts && !proof.refunds) {
            const { remaining } = byLargest(alone, charge.at, largest)
            claim(
              charge.cost <= remaining,
              'admitted more than the largest limit alone',
              policies,
              alone,
              charge,
            )
          }
          alone.push({ ...charge, numbers: largest })
        },
      })
    }),
    { seed: 20_260_102, numRuns: (scale * decisions) / movesPerTrace },
  )
}

/**
 * Proves that a refund right after its charge makes every answer what it was before, in traces of `decisions` requests
 * whose clock does not go back: each charge is given back at once, and every second one is then charged again.
 */
export function proveUndone(policy: fc.Arbitrary<Policy>, decisions: number): void {
  let undone = 0
  fc.assert(
    fc.property(policy, moves(movesPerTrace), (policy, moves) => {
      const { step, refund, rule, burst, limit, windowMs } = resolvePolicy(policy)
      let state: unknown
      let last: Step | undefined
      let nowUs = firstUs
      for (const move of moves) {
        nowUs = Math.max(nowUs, arrive(move, nowUs, last, windowMs * 1000, burst, limit))
        const answers = (): unknown[] => {
          const { remaining } = step(state, nowUs, 0, rule)
          return [0, 1, remaining, remaining + 1].map((cost) => {
            const { next, ...answer } = step(state, nowUs, cost, rule)
            return answer
          })
        }
        const before = answers()
        const cost = priceOf(move, burst, step(state, nowUs, 0, rule).remaining)
        last = step(state, nowUs, cost, rule)
        if (last.next === undefined) continue
        state = refund(last.next, nowUs, { units: cost, atUs: nowUs, resetUs: last.resetUs }, rule)
        expect(answers()).toEqual(before)
        undone += 1
        if (move.policy % 2 === 0) state = step(state, nowUs, cost, rule).next
      }
    }),
    { seed: 20_260_110, numRuns: (scale * decisions) / movesPerTrace },
  )
  expect(undone).toBeGreaterThan((scale * decisions) / 4)
}
