import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import {
  type Algorithm,
  algorithmNames,
  type Check,
  type ClockUs,
  type Policy,
  type ResolvedPolicy,
  resolvePolicy,
  type Store,
} from '@sluice/core'
import fc from 'fast-check'
import { arrive, families, type Move, moves, priceOf } from './trace.js'
import { numbersOf } from './verdict.js'

/** Makes the two stores to compare, which count by the clock that it is given. */
export type MakeStores = (nowUs: ClockUs) => readonly [Store, Store] | Promise<readonly [Store, Store]>

/** Options of {@link parity}. */
export interface ParityOptions {
  /** The algorithms to compare. Default: all. */
  algorithms?: readonly Algorithm[]
  /** Random traces for each algorithm, of 30 calls each. Default 100. */
  runs?: number
  /** Where the random numbers begin; the same seed gives the same traces. Default 1. */
  seed?: number
  /** Whether time may go back. Not for stores that forget a key once its time is over. Default false. */
  clockGoesBack?: boolean
}

/**
 * Defines one test for each algorithm: two stores that are sent the same random calls at the same times must give the
 * same verdicts. Calls have one to three checks, of policies that share keys, and come at the very microseconds at
 * which answers change. Uses the globals of Jest, or of Vitest with `globals: true`.
 * @example
 * parity('MyStore', (nowUs) => [new MemoryStore({ nowUs }), new MyStore({ nowUs })])
 */
export function parity(name: string, makeStores: MakeStores, options: ParityOptions = {}): void {
  const { algorithms = algorithmNames } = options
  describe(name, () => {
    test.each(algorithms.map((algorithm) => [algorithm]))(
      'decides as the other store does: %s',
      (algorithm) => compareStores(algorithm, makeStores, options),
    )
  })
}

/** Throws, with the shortest trace it can find, where the two stores disagree. */
export async function compareStores(
  algorithm: Algorithm,
  makeStores: MakeStores,
  { runs = 100, seed = 1, clockGoesBack = false }: ParityOptions = {},
): Promise<void> {
  const clock = { us: startUs }
  const stores = await makeStores(() => clock.us)
  const keys = fc.tuple(
    families(fc.constant(algorithm)),
    families(fc.constant(algorithm)),
    families(fc.constantFrom(...algorithmNames)),
  )
  try {
    await fc.assert(
      fc.asyncProperty(keys, moves(30), (keys, moves) => run(stores, clock, keys, moves, clockGoesBack)),
      { seed, numRuns: runs },
    )
  } finally {
    for (const store of stores) await store.close()
  }
}

const startUs = 1.8e15

async function run(
  [one, other]: readonly [Store, Store],
  clock: { us: number },
  keys: readonly Policy[][],
  moves: readonly Move[],
  clockGoesBack: boolean,
): Promise<void> {
  const all = keys.map((policies) => policies.map((policy) => resolvePolicy(policy)))
  const prefix = `1:{${randomUUID()}}:`
  const options = { timeoutMs: 10_000 }
  let waits = { retryUs: 0, replenishUs: 0, resetUs: 0 }
  clock.us = startUs
  for (const move of moves) {
    const checks = checksOf(move, all, prefix)
    const { windowMs, burst, limit } = (checks[0] as Check).policy
    const atUs = arrive(move, clock.us, waits, windowMs * 1000, Math.max(1, burst), Math.max(1, limit))
    clock.us = clockGoesBack ? atUs : Math.max(clock.us, atUs)
    const [standing] = await one.peek(
      checks.slice(0, 1).map((check) => ({ ...check, least: 0, most: 0 })),
      options,
    )
    const most = priceOf(move, burst, standing?.remaining ?? 0)
    const least = move.arrival % 3 === 0 ? Math.floor(move.portion * most) : most
    const priced = checks.map((check) => ({ ...check, least, most }))
    const method = move.policy % 7 === 0 ? 'peek' : 'consume'
    const [verdicts, others] = await Promise.all([
      one[method](priced, options),
      other[method](priced, options),
    ])
    const [expected, actual] = [verdicts.map(numbersOf), others.map(numbersOf)]
    if (!isDeepStrictEqual(actual, expected)) {
      const call = JSON.stringify({ method, atUs: clock.us, checks: priced.map(shown) })
      throw new Error(
        `Of the call ${call} one store says ${JSON.stringify(expected)} and the other ${JSON.stringify(actual)}`,
      )
    }
    waits = verdicts[0] ?? waits
  }
}

/** One to three checks, each of another key; the prices come later. */
function checksOf(move: Move, all: readonly (readonly ResolvedPolicy[])[], prefix: string): Check[] {
  return Array.from({ length: 1 + (move.policy % all.length) }, (_, i) => {
    const at = (move.policy + i) % all.length
    const policies = all[at] as readonly ResolvedPolicy[]
    const policy = policies[(move.policy + move.price) % policies.length] as ResolvedPolicy
    return { key: `${prefix}${at}`, policy, least: 0, most: 0 }
  })
}

function shown({ key, policy, least, most }: Check): object {
  const { algorithm, limit, burst, windowMs, shadow } = policy
  return { key, algorithm, limit, burst, windowMs, shadow, least, most }
}
