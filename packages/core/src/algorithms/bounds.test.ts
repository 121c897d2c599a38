import fc from 'fast-check'
import { shares } from '../../test/trace.js'
import type { AlgorithmDefinition, PolicyNumbers } from './algorithm.js'
import { type Algorithm, algorithms } from './index.js'

/** A request that was admitted. */
interface Charge {
  readonly atUs: number
  readonly cost: number
  readonly delayUs: number
}

/** How far the last of some charges is from breaking a bound: 0 reaches it, less breaks it. */
type Slack = (charges: readonly Charge[]) => number

interface Numbers {
  readonly limit: number
  readonly windowUs: number
  readonly burst?: number
  readonly queue?: number
  readonly slices?: number
  readonly align?: string
}

/** Numbers and a bound that they must keep, and the same numbers loosened by one unit, which must not keep it. */
interface Case {
  readonly algorithm: Algorithm
  readonly bound: string
  readonly slack: (numbers: Numbers) => Slack
  readonly loosen: (numbers: Numbers) => Numbers
  /** Numbers so small that every schedule can be tried. */
  readonly small: readonly Numbers[]
  /** Numbers of the size that policies have. */
  readonly large: readonly Numbers[]
}

/** By all intervals of some length that end with the last charge and begin with one before it. */
function perInterval(most: (spanUs: number) => number): Slack {
  return (charges) => {
    const endUs = (charges.at(-1) as Charge).atUs
    let sum = 0
    let least = Number.POSITIVE_INFINITY
    for (const { atUs, cost } of charges.toReversed()) {
      sum += cost
      // Of a single moment no bound says more than that the limit, or the burst, is kept.
      if (endUs > atUs) least = Math.min(least, most(endUs - atUs) - sum)
    }
    return least
  }
}

const perWindow = (most: (limit: number) => number) => (numbers: Numbers) =>
  perInterval((spanUs) => (spanUs < numbers.windowUs ? most(numbers.limit) : Number.POSITIVE_INFINITY))

const perRate =
  (burst: (numbers: Numbers) => number) =>
  (numbers: Numbers): Slack =>
    perInterval((spanUs) => burst(numbers) + Math.floor((numbers.limit * spanUs) / numbers.windowUs))

/** By the distance of the last two departures. The numbers are such that the interval is whole. */
const perDeparture =
  ({ limit, windowUs }: Numbers): Slack =>
  (charges) => {
    const [before, last] = charges.slice(-2)
    if (!before || !last) return Number.POSITIVE_INFINITY
    const apartUs = last.atUs + last.delayUs - before.atUs - before.delayUs
    return apartUs - (last.cost * windowUs) / limit
  }

const looserLimit = (numbers: Numbers): Numbers => ({ ...numbers, limit: numbers.limit + 1 })
const looserBurst = (numbers: Numbers): Numbers => ({ ...numbers, burst: (numbers.burst ?? 0) + 1 })
const looserQueue = (numbers: Numbers): Numbers => ({ ...numbers, queue: (numbers.queue ?? 0) + 1 })

const small = [
  { limit: 2, windowUs: 5 },
  { limit: 3, windowUs: 4 },
]
const smallWeighted = [
  { limit: 2, windowUs: 5 },
  { limit: 3, windowUs: 6 },
]
const large = [
  { limit: 7, windowUs: 1_000_000 },
  { limit: 100, windowUs: 60_000_000 },
  { limit: 100_000, windowUs: 86_400_000_000 },
]
const withBurst = (burst: (limit: number) => number) => (numbers: Numbers) => ({
  ...numbers,
  burst: burst(numbers.limit),
})
const buckets = {
  bound: 'burst + limit x T / window in any interval T',
  slack: perRate(({ burst = 0 }) => burst),
  loosen: looserBurst,
  small: small.map(withBurst((limit) => limit)),
  large: [
    ...large.map(withBurst((limit) => limit)),
    ...large.map(withBurst((limit) => 1 + Math.floor(limit / 3))),
  ],
}

const cases: readonly Case[] = [
  {
    algorithm: 'fixed-window',
    bound: 'twice the limit in any window',
    slack: perWindow((limit) => 2 * limit),
    loosen: looserLimit,
    small,
    large,
  },
  {
    // One unit less, since a window opens with a charge: its limit cannot all come at its end.
    algorithm: 'fixed-window',
    bound: 'twice the limit less one in any window where windows open with the first request',
    slack: perWindow((limit) => 2 * limit - 1),
    loosen: looserLimit,
    small: small.map((numbers) => ({ ...numbers, align: 'first-request' })),
    large: large.map((numbers) => ({ ...numbers, align: 'first-request' })),
  },
  {
    algorithm: 'sliding-window-counter',
    bound: 'twice the limit less one in any window',
    slack: perWindow((limit) => 2 * limit - 1),
    loosen: looserLimit,
    small: smallWeighted,
    large,
  },
  {
    algorithm: 'sliding-window-log',
    bound: 'the limit in any window',
    slack: perWindow((limit) => limit),
    loosen: looserLimit,
    small,
    large: large.map((numbers) => ({ ...numbers, limit: Math.min(numbers.limit, 99_999) })),
  },
  {
    algorithm: 'sliding-window-ring',
    bound: 'the limit in any window',
    slack: perWindow((limit) => limit),
    loosen: looserLimit,
    small: small.flatMap((numbers) => [2, 3, 4].map((slices) => ({ ...numbers, slices }))),
    large: large.flatMap((numbers) => [2, 30].map((slices) => ({ ...numbers, slices }))),
  },
  { algorithm: 'token-bucket', ...buckets },
  { algorithm: 'gcra', ...buckets },
  {
    algorithm: 'leaky-bucket',
    bound: 'queue + 1 + limit x T / window in any interval T',
    slack: perRate(({ queue = 0 }) => queue + 1),
    loosen: looserQueue,
    small: small.map((numbers) => ({ ...numbers, queue: 1 })),
    large: large.map((numbers) => ({ ...numbers, queue: Math.floor(numbers.limit / 2) })),
  },
  {
    algorithm: 'leaky-bucket',
    bound: 'departures window / limit apart',
    slack: perDeparture,
    loosen: looserLimit,
    small: [
      { limit: 2, windowUs: 6, queue: 2 },
      { limit: 1, windowUs: 3, queue: 3 },
    ],
    large: [
      { limit: 8, windowUs: 1_000_000, queue: 20 },
      { limit: 100, windowUs: 60_000_000, queue: 5 },
    ],
  },
]

function resolve(algorithm: Algorithm, { limit, windowUs, ...options }: Numbers) {
  const definition: AlgorithmDefinition = algorithms[algorithm]
  const numbers: PolicyNumbers = { limit, windowUs, options }
  return { definition, rule: definition.resolve(numbers) }
}

/** Tries every schedule of two windows and a bit, and returns the least slack. */
function tryAll(algorithm: Algorithm, numbers: Numbers, slack: Slack): number {
  const { definition, rule } = resolve(algorithm, numbers)
  const endUs = 2 * numbers.windowUs + 2
  let least = Number.POSITIVE_INFINITY
  const charges: Charge[] = []
  const from = (atUs: number, state: unknown): void => {
    if (atUs === endUs) return
    from(atUs + 1, state)
    const { remaining } = definition.step(state, atUs, 0, rule)
    for (let cost = 1; cost <= remaining; cost += 1) {
      // A step may write into the state it is given, which other schedules go on from.
      const { next, delayUs } = definition.step(structuredClone(state), atUs, cost, rule)
      charges.push({ atUs, cost, delayUs })
      least = Math.min(least, slack(charges))
      from(atUs + 1, next)
      charges.pop()
    }
  }
  from(0, undefined)
  return least
}

/**
 * Searches for the schedule with the least slack: requests take all that is free, one unit, or a share, within two
 * microseconds of the edges of windows, of slices and of what was charged before, and at random.
 */
function search(algorithm: Algorithm, numbers: Numbers, slack: Slack, runs: number): number {
  const { definition, rule } = resolve(algorithm, numbers)
  const { windowUs, slices = 1 } = numbers
  const firstUs = Math.ceil(1.8e15 / windowUs) * windowUs
  const request = fc.record({
    near: fc.nat(3),
    edge: fc.nat(3),
    offset: fc.integer({ min: -2, max: 2 }),
    take: fc.nat(3),
    share: shares,
  })
  let least = Number.POSITIVE_INFINITY
  fc.assert(
    fc.property(fc.array(request, { minLength: 8, maxLength: 8 }), (requests) => {
      const charges: Charge[] = []
      let state: unknown
      let nowUs = firstUs
      for (const { near, edge, offset, take, share } of requests) {
        const sinceUs = Math.floor(share * windowUs)
        const edgesUs = [
          firstUs + edge * windowUs,
          firstUs + edge * windowUs + Math.ceil((Math.floor(share * slices) * windowUs) / slices),
          (charges.at(-1 - edge)?.atUs ?? nowUs) + windowUs,
          nowUs + Math.floor(sinceUs / (1 + edge)),
        ]
        nowUs = Math.max(nowUs, (edgesUs[near] as number) + offset)
        const { remaining } = definition.step(state, nowUs, 0, rule)
        if (remaining === 0) continue
        const cost = [remaining, remaining, 1, Math.ceil(share * remaining) || 1][take] as number
        const { next, delayUs } = definition.step(state, nowUs, cost, rule)
        state = next
        charges.push({ atUs: nowUs, cost, delayUs })
        least = Math.min(least, slack(charges))
      }
    }),
    { seed: 20_260_120, numRuns: runs },
  )
  return least
}

const scale = Number(process.env.SLUICE_TEST_SCALE ?? 1)
const runs = 3000

describe.each(cases.map((each) => [each.algorithm, each.bound, each] as const))(
  '%s keeps to %s',
  (algorithm, _bound, { slack, loosen, small, large }) => {
    test.each(small.map((numbers) => [numbers]))(
      'with %j under every schedule, and reaches it; one unit looser breaks it',
      (numbers) => {
        expect(tryAll(algorithm, numbers, slack(numbers))).toBe(0)
        expect(tryAll(algorithm, loosen(numbers), slack(numbers))).toBeLessThan(0)
      },
    )

    test.each(large.map((numbers) => [numbers]))(
      'with %j under the worst schedule of a search, and reaches it; one unit looser breaks it',
      (numbers) => {
        expect(search(algorithm, numbers, slack(numbers), runs * scale)).toBe(0)
        expect(search(algorithm, loosen(numbers), slack(numbers), runs)).toBeLessThan(0)
      },
    )
  },
)

describe.each(['token-bucket', 'gcra'] as const)(
  '%s, of which units are given back in any order',
  (algorithm) => {
    const request = fc.record({
      waits: shares,
      take: fc.nat(3),
      share: shares,
      giveBack: fc.nat(2),
      which: shares,
    })

    test.each(buckets.large.map((numbers) => [numbers]))(
      'with %j admits for good at most burst + limit x T / window, and what is given back in T of charges before it',
      (numbers) => {
        const { definition, rule } = resolve(algorithm, numbers)
        const { limit, windowUs, burst } = numbers
        let refunds = 0
        fc.assert(
          fc.property(fc.array(request, { minLength: 30, maxLength: 30 }), (requests) => {
            const charges: { atUs: number; cost: number; resetUs: number; givenBackUs: number }[] = []
            let state: unknown
            let nowUs = 1.8e15
            for (const { waits, take, share, giveBack, which } of requests) {
              nowUs += Math.floor(waits ** 4 * windowUs)
              const held = charges.filter(({ givenBackUs }) => givenBackUs === Number.POSITIVE_INFINITY)
              const charge = held[Math.floor(which * held.length)]
              if (giveBack > 0 && charge) {
                const next = definition.refund(state, nowUs, { ...charge, units: charge.cost }, rule)
                charge.givenBackUs = nowUs
                if (next) refunds += 1
                state = next ?? state
              }
              const { remaining } = definition.step(state, nowUs, 0, rule)
              if (remaining === 0) continue
              const cost = [remaining, 1, Math.ceil(share * remaining) || 1, 1][take] as number
              const { next, resetUs } = definition.step(state, nowUs, cost, rule)
              state = next
              charges.push({ atUs: nowUs, cost, resetUs, givenBackUs: Number.POSITIVE_INFINITY })
            }
            for (const [i, { atUs: startUs }] of charges.entries()) {
              let admitted = 0
              for (const { atUs: endUs, cost, givenBackUs } of charges.slice(i)) {
                if (givenBackUs === Number.POSITIVE_INFINITY) admitted += cost
                const before = charges
                  .slice(0, i)
                  .filter(({ givenBackUs: us }) => us >= startUs && us <= endUs)
                const given = before.reduce((sum, { cost }) => sum + cost, 0)
                // A microsecond more, by which a refund may round.
                const most = burst + Math.floor((limit * (endUs - startUs + 1)) / windowUs) + given
                if (admitted > most)
                  throw new Error(`Admitted ${admitted}, at most ${most} from ${startUs} to ${endUs}`)
              }
            }
          }),
          { seed: 20_260_121, numRuns: 300 * scale },
        )
        expect(refunds).toBeGreaterThan(300)
      },
    )
  },
)
