import fc from 'fast-check'
import type { AlgorithmDefinition, Rule, Step } from '../src/algorithms/algorithm.js'
import { algorithms } from '../src/algorithms/index.js'
import { type Policy, resolvePolicy } from '../src/policy.js'
import type { Charge, Model, Numbers } from './models/model.js'

/** How the next request of a trace arrives; the numbers are turned into times and costs as the trace runs. */
export interface Move {
  readonly arrival: number
  readonly jitter: number
  readonly share: number
  readonly price: number
  readonly portion: number
  /** Which of the trace's policies asks. */
  readonly policy: number
}

/** Evenly spread from 0 to 1. */
export const shares = fc.noBias(fc.nat(2 ** 30)).map((n) => n / 2 ** 30)

export const moves = (length: number): fc.Arbitrary<Move[]> =>
  fc.array(
    fc.record({
      arrival: fc.nat(15),
      jitter: fc.integer({ min: -1, max: 1 }),
      share: shares,
      price: fc.nat(9),
      portion: shares,
      policy: fc.nat(99),
    }),
    { minLength: length, maxLength: length },
  )

/** Whole numbers of every magnitude from `min` to `max`, with the ends and round ones often. */
function magnitudes(min: number, max: number, favourites: readonly number[]): fc.Arbitrary<number> {
  const spread = shares.map((share) => Math.round(min * (max / min) ** share))
  return fc.oneof(
    { weight: 3, arbitrary: spread },
    { weight: 1, arbitrary: fc.constantFrom(min, max, ...favourites) },
  )
}

const maxWindowMs = 400 * 86_400_000
export const limits = magnitudes(1, 1e9, [2, 3, 7, 10, 100, 1000, 99_991, 1_000_000, 999_999_937])
export const windowsMs = magnitudes(1, maxWindowMs, [7, 1000, 60_000, 3_600_000, 86_400_000, 86_399_999])
const centuryUs = 100 * 365.25 * 86_400 * 1e6

/** A burst that the limits of the product allow; undefined is the default. */
export const bursts = fc.option(magnitudes(1, 1e9, [2, 5, 20]), { nil: undefined, freq: 2 })

export function withBurst(policy: Policy, burst: number | undefined): Policy {
  if (burst === undefined) return policy
  const most = Math.floor((centuryUs * policy.limit) / (Number(policy.window) * 1000))
  return { ...policy, burst: Math.max(1, Math.min(burst, most)) }
}

/** The longest time that traces reach, in microseconds: some 150 years from 1970. */
const lastUs = 5e15
const firstUs = 1.8e15

/** The moments that an answer names. */
export type Waits = Pick<Step, 'retryUs' | 'replenishUs' | 'resetUs'>

/** Turns a move into a moment: half of them within a microsecond of one that the last answer or a window names. */
export function arrive(
  move: Move,
  nowUs: number,
  last: Waits | undefined,
  windowUs: number,
  burst: number,
  limit: number,
): number {
  const { arrival, jitter, share } = move
  const nextWindowUs = (Math.floor(nowUs / windowUs) + 1) * windowUs
  const fillUs = (burst * windowUs) / limit
  const named = [
    nowUs + Math.max(0, last?.retryUs ?? 0),
    nowUs + (last?.replenishUs ?? 0),
    nowUs + (last?.resetUs ?? 0),
    nextWindowUs,
    nextWindowUs + windowUs,
  ]
  const back = [nowUs - windowUs, nowUs + (last?.resetUs ?? 0) - Math.floor(fillUs) - windowUs]
  let at: number
  if (arrival < 5) at = (named[arrival] as number) + jitter
  else if (arrival < 8) at = (named[Math.floor(share * 5)] ?? nowUs) + jitter
  else if (arrival < 10) at = nowUs
  else if (arrival === 10) at = nowUs + Math.round((share * 3 * windowUs) / limit)
  else if (arrival === 11) at = nowUs + Math.round(share * 2 * windowUs)
  else if (arrival === 12) at = nowUs + Math.round(share * 3 * fillUs)
  else if (arrival === 13) at = nowUs + Math.round(share * 20 * windowUs)
  else if (arrival === 14) at = nowUs - Math.round(share * 2.5 * windowUs)
  else at = (back[move.policy % 2] as number) + jitter
  return at < 0 || at > lastUs ? nowUs : at
}

/** Turns a move into a cost from 0 to one more than can ever pass. */
export function priceOf(move: Move, burst: number, remaining: number): number {
  const costs = [
    0,
    1,
    1,
    remaining,
    remaining,
    remaining + 1,
    burst,
    burst + 1,
    Math.floor(move.portion * burst),
    Math.floor(move.portion * remaining),
  ]
  return Math.min(costs[move.price] as number, burst + 1)
}

export function numbersOf(policy: Policy): Numbers {
  const { limit, windowMs, burst } = resolvePolicy(policy)
  const aligned = policy.align !== 'first-request'
  return { limit: BigInt(limit), windowUs: BigInt(windowMs * 1000), burst: BigInt(burst), aligned }
}

/** How many decisions a property made on each side of a line. */
export interface Tally {
  inside: number
  outside: number
  /** Comparisons with the unrounded model that bound a wait. */
  bounded: number
}

export interface Proof {
  readonly policies: readonly Policy[]
  readonly model: Model
  /** The model without rounding, to bound the decisions of rounded policies. */
  readonly unrounded?: Model
  readonly moves: readonly Move[]
  /** Whether these numbers lie beyond the line of 2^53. */
  readonly isOutside: (numbers: Numbers) => boolean
  readonly tally: Tally
  /** Told of every charge. */
  readonly onCharge?: (charge: Charge) => void
}

function claim(holds: boolean, what: string, ...evidence: unknown[]): void {
  if (holds) return
  const shown = evidence.map((value) =>
    JSON.stringify(value, (_, inner) => (typeof inner === 'bigint' ? `${inner}` : inner)),
  )
  throw new Error(`${what}: ${shown.join(' ')}`)
}

/** Runs a trace through the step and proves every answer by what the model says at the moments that it names. */
export function prove({ policies, model, unrounded, moves, isOutside, tally, onCharge }: Proof): void {
  const rules = policies.map((policy) => {
    const { rule, limit, burst, windowMs, algorithm } = resolvePolicy(policy)
    const definition: AlgorithmDefinition = algorithms[algorithm]
    return {
      definition,
      rule: rule as Rule,
      limit,
      burst,
      windowUs: windowMs * 1000,
      numbers: numbersOf(policy),
    }
  })
  const history: Charge[] = []
  let state: unknown
  let last: Step | undefined
  let nowUs = firstUs
  let busyUnits = 0n
  let clockWentBack = false

  for (const move of moves) {
    const asking = rules[move.policy % rules.length] as (typeof rules)[number]
    const { definition, rule, limit, burst, windowUs, numbers } = asking
    const thenUs = arrive(move, nowUs, last, windowUs, burst, limit)
    if (thenUs < nowUs) clockWentBack = true
    nowUs = thenUs
    const now = BigInt(nowUs)
    const remainingAt = (afterUs: number): bigint => model(history, now + BigInt(afterUs), numbers).remaining
    const { remaining: before, whole } = model(history, now, numbers)
    const cost = priceOf(move, burst, Number(before))
    const answer = definition.step(state, nowUs, cost, rule)
    const evidence = { policy: policies[move.policy % rules.length], nowUs, cost, state, answer, history }

    claim(answer.allowed === BigInt(cost) <= before, 'allowed', before, evidence)
    claim((answer.next !== undefined) === (answer.allowed && cost > 0), 'next state', evidence)
    const outside = isOutside(numbers)
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
      claim(remainingAt(answer.replenishUs - 1) === after.remaining, 'replenish too late', evidence)
    }
    const wholeAt = (afterUs: number): boolean => model(history, now + BigInt(afterUs), numbers).whole
    claim(answer.resetUs >= 0 && wholeAt(answer.resetUs), 'reset too early', evidence)
    claim(answer.resetUs === 0 || !wholeAt(answer.resetUs - 1), 'reset too late', evidence)
    claim(answer.delayUs === 0, 'delay', evidence)

    tally[outside ? 'outside' : 'inside'] += 1
    last = answer
  }
}

/** Whether limit x window passes 2^53. */
export const isLongProduct = ({ limit, windowUs }: Numbers): boolean => limit * windowUs > 2n ** 53n

/** Proves `runs` traces of one policy each, 25 decisions long, and says how many decisions fell on each side. */
export function proveAlone(
  proof: Pick<Proof, 'model' | 'unrounded' | 'isOutside'>,
  policy: fc.Arbitrary<Policy>,
  runs: number,
): Tally {
  const tally: Tally = { inside: 0, outside: 0, bounded: 0 }
  fc.assert(
    fc.property(policy, moves(25), (policy, moves) => prove({ ...proof, policies: [policy], moves, tally })),
    { seed: 20_260_101, numRuns: runs },
  )
  return tally
}

/**
 * Proves `runs` traces in which several policies of one algorithm and window share a key; and, unless they have bursts
 * of their own, that no such trace admits what the largest limit alone would refuse.
 */
export function proveTogether(
  proof: Pick<Proof, 'model' | 'isOutside'> & { readonly ownBursts?: boolean },
  policies: fc.Arbitrary<Policy[]>,
  runs: number,
): void {
  fc.assert(
    fc.property(policies, moves(25), (policies, moves) => {
      const largest = policies.map(numbersOf).reduce((a, b) => (b.limit > a.limit ? b : a))
      const alone: Charge[] = []
      let latest = 0n
      prove({
        ...proof,
        policies,
        moves,
        tally: { inside: 0, outside: 0, bounded: 0 },
        onCharge: (charge) => {
          // A clock that goes back may free a limit once, for one policy and not for another.
          if (charge.at < latest) latest = 2n ** 63n
          else latest = charge.at
          if (latest === charge.at && !proof.ownBursts) {
            const { remaining } = proof.model(alone, charge.at, largest)
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
    { seed: 20_260_102, numRuns: runs },
  )
}
