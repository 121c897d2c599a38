import type { Algorithm, Policy, Verdict } from '@sluice/core'
import fc from 'fast-check'

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

/** The latest moment of a trace, in microseconds: some 150 years from 1970. */
const lastUs = 5e15

/** The moments that an answer names. */
export type Waits = Pick<Verdict, 'retryUs' | 'replenishUs' | 'resetUs'>

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

/** Policies that may find each other's state at one key: one algorithm and window, with several limits and sizes. */
export function families(algorithms: fc.Arbitrary<Algorithm>): fc.Arbitrary<Policy[]> {
  const variant = fc.record({
    limit: fc.oneof({ weight: 9, arbitrary: limits }, { weight: 1, arbitrary: fc.constant(0) }),
    burst: bursts,
    shadow: fc.nat(3).map((n) => n === 0),
    align: fc.constantFrom('epoch' as const, 'first-request' as const),
  })
  const slices = fc.option(magnitudes(2, 1000, [30]), { nil: undefined, freq: 2 })
  const variants = fc.array(variant, { minLength: 1, maxLength: 3 })
  return fc.tuple(algorithms, windowsMs, slices, variants).map(([algorithm, window, slices, variants]) =>
    variants.map(({ limit, burst, shadow, align }): Policy => {
      const policy: Policy = { algorithm, window, limit, shadow }
      switch (algorithm) {
        case 'fixed-window':
          return { ...policy, align }
        case 'sliding-window-log':
          return { ...policy, limit: Math.min(limit, 100_000) }
        case 'sliding-window-ring':
          return slices === undefined ? policy : { ...policy, slices }
        case 'token-bucket':
        case 'gcra':
          return withBurst(policy, burst)
        case 'leaky-bucket': {
          const { burst: places, ...queue } = withBurst(policy, burst)
          return places === undefined ? queue : { ...queue, queue: places - 1 }
        }
        default:
          return policy
      }
    }),
  )
}
