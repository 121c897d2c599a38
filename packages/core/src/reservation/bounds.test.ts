import fc from 'fast-check'
import { pass } from '../../test/leasing.js'
import { checksOf, SharedStore } from '../../test/shared-store.js'
import type { Algorithm } from '../algorithms/index.js'
import { type Policy, type ResolvedPolicy, resolvePolicy } from '../policy.js'
import type { Check, Verdict } from '../store.js'
import type { LeaseTerms } from './lease-terms.js'
import { Reservation } from './reservation.js'

beforeEach(() => {
  jest.useFakeTimers({ now: 1_800_000_000_000 })
})
afterEach(() => {
  jest.useRealTimers()
})

/** Units that were admitted, and when by the store's clock, in ms. */
interface Admission {
  readonly atMs: number
  readonly units: number
}

/** Processes that share a store, over a network that delays, fails and loses as the numbers say, in turn. */
class World {
  readonly store = new SharedStore()
  readonly checks: readonly Check[]
  readonly nodes: Reservation[]
  readonly gone: Reservation[] = []
  readonly admissions: Admission[] = []
  /** What a request was told that it must not be. */
  readonly #faults: unknown[] = []
  /** Requests without an answer yet. */
  open = 0
  readonly #terms: LeaseTerms

  constructor(policy: ResolvedPolicy, nodes: number, terms: LeaseTerms, network: readonly number[] = []) {
    this.checks = checksOf([policy], 1, `${Date.now()}`)
    this.#terms = { ...terms, nodes }
    this.nodes = Array.from({ length: nodes }, () => new Reservation(this.store, () => nodes))
    let turn = 0
    const next = (): number => network[turn++ % network.length] ?? 0
    this.store.outMs = () => 1 + (next() % 40)
    this.store.backMs = () => 1 + (next() % 40)
    this.store.fails = () => next() % 23 === 7
    this.store.loses = () => next() % 29 === 7
  }

  ask(place: number, cost: number, timeoutMs: number): void {
    const node = this.nodes[place % this.nodes.length] as Reservation
    const checks = this.checks.map((check) => ({ ...check, least: cost, most: cost }))
    const askedMs = Date.now()
    this.open += 1
    void node
      .consume(checks, { timeoutMs, lease: this.#terms })
      .then(([verdict]) => this.#note(verdict as Verdict, cost, askedMs))
      .catch((error) => {
        if (!['ECONNRESET', 'SLUICE_STORE_TIMEOUT'].includes(error.code ?? error.message))
          this.#faults.push(error)
      })
      .finally(() => {
        this.open -= 1
      })
  }

  /** A process ends without closing, and another takes its place. */
  crash(place: number): void {
    const index = place % this.nodes.length
    this.gone.push(this.nodes[index] as Reservation)
    this.nodes[index] = new Reservation(this.store, () => this.nodes.length)
  }

  /** A process ends, and another takes its place. */
  close(place: number): void {
    const index = place % this.nodes.length
    const node = this.nodes[index] as Reservation
    this.gone.push(node)
    void node.close()
    this.nodes[index] = new Reservation(this.store, () => this.nodes.length)
  }

  /** Fails if a process cannot account for what it has charged, or somebody was told what they must not be. */
  check(): void {
    for (const { tally, held } of [...this.nodes, ...this.gone]) {
      const { charged, admitted, returned, expired } = tally
      expect(admitted + held + returned + expired).toBe(charged)
    }
    expect(this.#faults).toEqual([])
  }

  #note({ allowed, remaining, atUs }: Verdict, cost: number, askedMs: number): void {
    // Nobody is denied what the store and the process had between them, since it was asked for.
    if (!allowed) {
      expect(remaining).toBeLessThan(cost)
      expect(atUs / 1000).toBeGreaterThanOrEqual(askedMs)
    }
    // Who is served at once is so at that time; who waited, when the store was charged, and not before having asked.
    else this.admissions.push({ atMs: Math.max(askedMs, atUs / 1000), units: cost })
  }
}

/** The most units admitted in any span of this length, its end excluded. */
function mostIn(admissions: readonly Admission[], spanMs: number): number {
  const sorted = [...admissions].sort((a, b) => a.atMs - b.atMs)
  let [most, sum, first] = [0, 0, 0]
  for (const { atMs, units } of sorted) {
    sum += units
    while ((sorted[first] as Admission).atMs <= atMs - spanMs) sum -= (sorted[first++] as Admission).units
    most = Math.max(most, sum)
  }
  return most
}

/** The most units admitted in any interval beyond what a bucket admits. */
function mostBeyond(admissions: readonly Admission[], burst: number, perMs: number): number {
  const sorted = [...admissions].sort((a, b) => a.atMs - b.atMs)
  let [sum, lowest, most] = [0, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const { atMs, units } of sorted) {
    lowest = Math.min(lowest, sum - perMs * atMs)
    sum += units
    most = Math.max(most, sum - perMs * atMs - lowest - burst)
  }
  return most
}

interface Event {
  readonly waitMs: number
  readonly node: number
  readonly count: number
  readonly cost: number
  readonly timeoutMs: number
  readonly ends: 'crash' | 'close' | undefined
}

const event: fc.Arbitrary<Event> = fc.record({
  waitMs: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 700 })),
  node: fc.nat(4),
  count: fc.integer({ min: 1, max: 8 }),
  cost: fc.oneof({ weight: 3, arbitrary: fc.constant(1) }, fc.integer({ min: 0, max: 12 })),
  timeoutMs: fc.constantFrom(30, 100, 1000),
  ends: fc.oneof(
    { weight: 20, arbitrary: fc.constant(undefined) },
    fc.constantFrom<'crash' | 'close'>('crash', 'close'),
  ),
})

const scenario = fc.record({
  startMs: fc.nat(3000),
  nodes: fc.integer({ min: 1, max: 5 }),
  limit: fc.integer({ min: 5, max: 100 }),
  max: fc.constantFrom(1, 5, 10, 50),
  ttlMs: fc.constantFrom(150, 1000, 5000),
  events: fc.array(event, { minLength: 10, maxLength: 60 }),
  network: fc.array(fc.nat(1000), { minLength: 1, maxLength: 40 }),
})
type Scenario = typeof scenario extends fc.Arbitrary<infer T> ? T : never

const runs = { numRuns: 20 * Number(process.env.SLUICE_TEST_SCALE ?? 1) }

async function play(
  policy: Partial<Policy>,
  { startMs, nodes, limit, max, ttlMs, events, network }: Scenario,
) {
  jest.setSystemTime(1_800_000_000_000 + startMs)
  const resolved = resolvePolicy({ limit, window: 1000, ...policy })
  const world = new World(resolved, nodes, { max, ttlMs: Math.min(ttlMs, resolved.windowMs) }, network)
  for (const { waitMs, node, count, cost, timeoutMs, ends } of events) {
    await pass(waitMs)
    if (ends) world[ends](node)
    for (let i = 0; i < count; i++) world.ask(node + (i % 2), cost, timeoutMs)
    world.check()
  }
  await pass(2500)
  world.check()
  expect(world.open).toBe(0)
  return world
}

test('at any moment charged = admitted + held + returned + expired, and the store has charged no more and no less', async () => {
  await fc.assert(
    fc.asyncProperty(scenario, async (given) => {
      const limit = given.limit * 5
      const world = await play({ algorithm: 'fixed-window', window: '400d' }, { ...given, limit })
      const { store, checks, nodes, gone } = world
      // From here on everything arrives.
      store.fails = store.loses = () => false
      await Promise.all([...nodes.map((node) => node.close()), pass(200)])
      expect(nodes.map(({ held }) => held)).toEqual(nodes.map(() => 0))
      const spent = [...nodes, ...gone].reduce(
        (sum, { tally, held }) => sum + tally.admitted + tally.expired + held,
        0,
      )
      const direct = world.admissions.reduce((sum, { units }) => sum + units, 0)
      const leased = [...nodes, ...gone].reduce((sum, { tally }) => sum + tally.admitted, 0)
      expect(limit - (await store.remaining(checks))).toBe(spent + (direct - leased) + store.lost)
    }),
    runs,
  )
})

describe('however processes lease, crash and close, and their network delays, fails and loses', () => {
  test.each<[Algorithm, string, (limit: number) => number, Partial<Policy>]>([
    ['fixed-window', 'twice the limit across an edge', (limit) => 2 * limit, {}],
    ['fixed-window', 'twice the limit across an edge', (limit) => 2 * limit - 1, { align: 'first-request' }],
    ['sliding-window-counter', 'less than twice the limit', (limit) => 2 * limit - 1, {}],
    ['sliding-window-ring', 'the limit', (limit) => limit, { slices: 3 }],
    ['sliding-window-ring', 'the limit', (limit) => limit, { slices: 10 }],
  ])('%s admits at most %s in any window B123', async (algorithm, _, bound, more) => {
    await fc.assert(
      fc.asyncProperty(scenario, async (given) => {
        const { admissions } = await play({ algorithm, ...more }, given)
        expect(mostIn(admissions, 1000)).toBeLessThanOrEqual(bound(given.limit))
      }),
      runs,
    )
  })

  test('fixed-window admits at most the limit in each window B123', async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async (given) => {
        const { admissions } = await play({ algorithm: 'fixed-window' }, given)
        const windows = new Map<number, number>()
        for (const { atMs, units } of admissions) {
          const index = Math.floor(atMs / 1000)
          windows.set(index, (windows.get(index) ?? 0) + units)
        }
        expect(Math.max(0, ...windows.values())).toBeLessThanOrEqual(given.limit)
      }),
      runs,
    )
  })

  test.each<[Algorithm]>([['token-bucket'], ['gcra']])(
    '%s admits at most min(nodes x max, max(nodes, burst / 2)) beyond its bound in any interval',
    async (algorithm) => {
      await fc.assert(
        fc.asyncProperty(scenario, fc.integer({ min: 1, max: 100 }), async (given, burst) => {
          const { nodes, max, limit } = given
          const { admissions } = await play({ algorithm, burst }, given)
          const beyond = mostBeyond(admissions, burst, limit / 1000)
          expect(beyond).toBeLessThanOrEqual(Math.min(nodes * max, Math.max(nodes, burst / 2)) + 1e-6)
        }),
        runs,
      )
    },
  )
})

test.each<[string, Partial<LeaseTerms>, number]>([
  ['half of the burst', { max: 500 }, 250],
  ['what all of them may hold', { max: 20 }, 80],
])(
  'processes that hoard while the bucket refills, and then spend all, admit %s more and not above',
  async (_, more, bound) => {
    const [burst, limit, nodes] = [500, 10_000, 4]
    const policy = resolvePolicy({ algorithm: 'token-bucket', limit, window: 10_000, burst })
    const world = new World(policy, nodes, { max: 500, ttlMs: 5000, ...more })
    const places = world.nodes.map((_, place) => place)
    const heldBy = (place: number): number => (world.nodes[place] as Reservation).held
    for (let i = 0; i < 50; i++) {
      for (const place of [...places, ...places, ...places]) world.ask(place, 1, 1000)
      await pass(10)
    }
    // Each stops where it has just drawn most of its share.
    for (let short = places; short.length > 0; ) {
      for (const place of short) world.ask(place, 1, 1000)
      await pass(10)
      short = short.filter((place) => heldBy(place) < (bound / nodes) * 0.75)
    }
    await pass(500)
    world.admissions.length = 0
    for (let i = 0; i < 300; i++) for (const place of places) world.ask(place, 1, 1000)
    await pass(500)
    world.check()
    const beyond = mostBeyond(world.admissions, burst, limit / 10_000)
    expect(beyond).toBeGreaterThan(bound * 0.7)
    expect(beyond).toBeLessThanOrEqual(bound)
  },
)
