import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import {
  type Algorithm,
  algorithmNames,
  type Check,
  decide,
  type Policy,
  type ResolvedPolicy,
  resolvePolicy,
} from '@sluice/core'
import fc from 'fast-check'
import {
  arrive,
  bursts,
  limits,
  type Move,
  moves,
  priceOf,
  type Waits,
  windowsMs,
  withBurst,
} from '../../core/test/trace.js'
import { functionalClient } from './redis.js'
import { decoders, isMixed } from './state.js'
import { extraTtlMs, type Group, runTimed } from './timed-store.js'

const client = functionalClient({ keyPrefix: '' })
afterAll(() => client.quit())

const takesBurst = (algorithm: Algorithm): boolean => algorithm === 'token-bucket' || algorithm === 'gcra'

/** Policies that may find each other's state at one key: an algorithm and a window, with several limits and bursts. */
function families(algorithm: fc.Arbitrary<Algorithm>): fc.Arbitrary<Policy[]> {
  const variant = fc.record({
    limit: fc.oneof({ weight: 9, arbitrary: limits }, { weight: 1, arbitrary: fc.constant(0) }),
    burst: bursts,
    shadow: fc.nat(3).map((n) => n === 0),
    align: fc.constantFrom('epoch' as const, 'first-request' as const),
  })
  return fc
    .tuple(algorithm, windowsMs, fc.array(variant, { minLength: 1, maxLength: 3 }))
    .map(([algorithm, window, variants]) =>
      variants.map(({ limit, burst, shadow, align }): Policy => {
        const policy: Policy = { algorithm, window, limit, shadow }
        if (algorithm === 'fixed-window') return { ...policy, align }
        return takesBurst(algorithm) && limit > 0 ? withBurst(policy, burst) : policy
      }),
    )
}

type Family = readonly ResolvedPolicy[]

/** What a key holds by the TypeScript steps, and when Redis is to forget it. */
interface Kept {
  readonly state: unknown
  readonly ttlMs: number
}

interface Held {
  readonly raw: Buffer | null
  readonly dump: Buffer | null
  readonly ttlMs: number
}

async function look(keys: readonly string[]): Promise<Map<string, Held>> {
  const pipeline = client.pipeline()
  for (const key of keys) pipeline.getBuffer(key).dumpBuffer(key).pttl(key)
  const answers = ((await pipeline.exec()) ?? []).map(([error, value]) => {
    if (error) throw error
    return value
  })
  return new Map(
    keys.map((key, i) => {
      const [raw, dump, ttlMs] = answers.slice(3 * i, 3 * i + 3) as [Buffer | null, Buffer | null, number]
      return [key, { raw, dump, ttlMs }]
    }),
  )
}

/** `expect(actual).toEqual(expected)`, fast where they are. */
function expectSame(actual: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(actual, expected)) expect(actual).toStrictEqual(expected)
}

const codeOf = (policy: ResolvedPolicy): string => policy.wire[0] as string

/** Requests of one instant: some groups, made from consecutive moves. */
function groupsOf(
  call: readonly Move[],
  all: readonly Family[],
  prefix: string,
  nowUs: number,
  kept: Map<string, Kept>,
): Group[] {
  return call.map((move): Group => {
    const count = 1 + (move.policy % Math.min(3, all.length))
    const checks = Array.from({ length: count }, (_, i) => {
      const at = (move.policy + i) % all.length
      const policies = all[at] as Family
      const policy = policies[(move.policy + move.price) % policies.length] as ResolvedPolicy
      return { key: `${prefix}${at}`, policy }
    })
    const { key, policy } = checks[0] as (typeof checks)[number]
    const [standing] = decide([{ key, policy, least: 0, most: 0 }], [kept.get(key)?.state], nowUs)
    const most = priceOf(move, policy.burst, standing?.remaining ?? 0)
    const least = move.arrival % 3 === 0 ? Math.floor(move.portion * most) : most
    return {
      checks: checks.map((check): Check => ({ ...check, least, most })),
      charge: move.policy % 7 !== 0,
      notAfterUs: move.policy % 11 === 0 ? nowUs - 1 : nowUs + (move.policy % 3),
    }
  })
}

let decisions: Map<string, number>

async function compare(policies: readonly Policy[][], moves: readonly Move[]): Promise<void> {
  const all = policies.map((family): Family => family.map((policy) => resolvePolicy(policy)))
  const prefix = `test:{${randomUUID()}}:`
  const keys = all.map((_, i) => `${prefix}${i}`)
  const kept = new Map<string, Kept>()
  let held = await look(keys)
  let last: Waits | undefined
  let nowUs = 1.8e15
  for (let i = 0; i < moves.length; i += 3) {
    const call = moves.slice(i, i + 3)
    const [first] = call as [Move]
    const clock = (all[first.policy % all.length] as Family)[0] as ResolvedPolicy
    nowUs = arrive(
      first,
      nowUs,
      last,
      clock.windowMs * 1000,
      Math.max(1, clock.burst),
      Math.max(1, clock.limit),
    )
    const groups = groupsOf(call, all, prefix, nowUs, kept)
    const sentMs = performance.now()
    const answers = await runTimed(client, groups, nowUs)
    const written = new Set<string>()
    for (const [g, { checks, charge, notAfterUs }] of groups.entries()) {
      if (nowUs > notAfterUs) {
        expectSame(answers[g], undefined)
        continue
      }
      const outcomes = decide(
        checks,
        checks.map(({ key }) => kept.get(key)?.state),
        nowUs,
      )
      expectSame(
        answers[g],
        outcomes.map(({ next, ...verdict }) => verdict),
      )
      for (const [c, { next, resetUs }] of outcomes.entries()) {
        const { key, policy } = checks[c] as Check
        decisions.set(codeOf(policy), (decisions.get(codeOf(policy)) ?? 0) + 1)
        if (!charge || next === undefined) continue
        kept.set(key, { state: next, ttlMs: Math.ceil(resetUs / 1000) + 1000 })
        written.add(key)
      }
      last = outcomes[0]
    }
    const before = held
    held = await look(keys)
    const spentMs = performance.now() - sentMs
    for (const [k, key] of keys.entries()) {
      const { raw, dump, ttlMs } = held.get(key) as Held
      if (!written.has(key)) {
        expectSame(dump, before.get(key)?.dump)
        continue
      }
      const [policy] = all[k] as [ResolvedPolicy]
      const { state, ttlMs: due } = kept.get(key) as Kept
      const decoded = decoders[codeOf(policy)]?.(raw as Buffer, (state as { unit?: number }).unit)
      expectSame(decoded, state)
      const extra = ttlMs - extraTtlMs
      // Token buckets under changing limits are kept for longer.
      const mixed = policy.algorithm === 'token-bucket' && isMixed((raw as Buffer).readUInt32LE(20))
      if (extra > due && !mixed) expect(extra).toBeLessThanOrEqual(due)
      if (extra <= due - spentMs - 100) expect(extra).toBeGreaterThan(due - spentMs - 100)
    }
  }
  await client.del(...keys)
}

describe('the script decides as TypeScript does, with equal states and expiries; denials leave every byte', () => {
  test.each(algorithmNames.map((name) => [name]))(
    '%s, in 20,000 random decisions and more',
    async (name) => {
      decisions = new Map()
      const setting = fc.tuple(
        families(fc.constant(name)),
        families(fc.constant(name)),
        families(fc.constantFrom(...algorithmNames)),
      )
      const trace = fc.tuple(setting, moves(90))
      await fc.assert(
        fc.asyncProperty(trace, ([all, moves]) => compare(all, moves)),
        { seed: 20_260_107, numRuns: 200 },
      )
      const { wire } = resolvePolicy({ algorithm: name, limit: 1, window: '1s' })
      expect(decisions.get(wire[0] as string)).toBeGreaterThan(20_000)
    },
    120_000,
  )
})
