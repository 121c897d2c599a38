import { type Algorithm, algorithmNames, SluiceError } from '@sluice/core'
import { type FeedSecret, type SigningKey, verified, verifyingKeys } from './signature.js'

/** A policy that denies, as much as replies tell of it. */
export interface FeedPolicy {
  readonly name: string
  readonly algorithm: Algorithm
  readonly limit: number
  readonly windowMs: number
  readonly burst: number
}

/** A key that the origin refuses. */
export interface FeedEntry {
  /** The name of the limiter that refuses it. */
  readonly limiter: string
  readonly key: string
  /** How long from when the feed was issued, in whole milliseconds. */
  readonly waitMs: number
  /** The policies that deny; none where the key is blocked. */
  readonly policies: readonly FeedPolicy[]
}

/** What one publisher refuses at a moment. */
export interface FeedSnapshot {
  /** Which publisher issued it: another one after each start of a process. */
  readonly source: string
  /** Grows with each issue of a source. */
  readonly sequence: number
  /** When it was issued, by the clock of its publisher, in milliseconds since the epoch. */
  readonly issuedAtMs: number
  readonly entries: readonly FeedEntry[]
}

/** As it is sent: each policy once, and entries by limiter, which name theirs by its place. */
interface Wire {
  readonly source: string
  readonly sequence: number
  readonly issuedAtMs: number
  readonly policies: readonly (readonly [string, Algorithm, number, number, number])[]
  readonly entries: Readonly<Record<string, readonly (readonly [key: string, waitMs: number, ...number[]])[]>>
}

export function encodeSnapshot({ source, sequence, issuedAtMs, entries }: FeedSnapshot): string {
  const places = new Map<string, number>()
  const policies: Wire['policies'][number][] = []
  const placeOf = ({ name, algorithm, limit, windowMs, burst }: FeedPolicy): number => {
    const policy = [name, algorithm, limit, windowMs, burst] as const
    const json = JSON.stringify(policy)
    let place = places.get(json)
    if (place === undefined) {
      place = policies.push(policy) - 1
      places.set(json, place)
    }
    return place
  }
  const byLimiter = new Map<string, [string, number, ...number[]][]>()
  for (const { limiter, key, waitMs, policies } of entries) {
    const list = byLimiter.get(limiter) ?? []
    byLimiter.set(limiter, list)
    list.push([key, waitMs, ...policies.map(placeOf)])
  }
  const wire: Wire = { source, sequence, issuedAtMs, policies, entries: Object.fromEntries(byLimiter) }
  return JSON.stringify(wire)
}

/** Reads what {@link encodeSnapshot} wrote; undefined for anything else. */
export function decodeSnapshot(text: string): FeedSnapshot | undefined {
  try {
    const { source, sequence, issuedAtMs, policies, entries } = JSON.parse(text) as Wire
    const known = policies.map(([name, algorithm, limit, windowMs, burst]): FeedPolicy => {
      if (typeof name !== 'string' || !algorithmNames.includes(algorithm)) return fail()
      return { name, algorithm, limit: whole(limit), windowMs: whole(windowMs), burst: whole(burst) }
    })
    if (typeof source !== 'string') return fail()
    return {
      source,
      sequence: whole(sequence),
      issuedAtMs: whole(issuedAtMs),
      entries: Object.entries(entries).flatMap(([limiter, list]) =>
        list.map(([key, waitMs, ...places]): FeedEntry => {
          if (typeof key !== 'string') return fail()
          return { limiter, key, waitMs: whole(waitMs), policies: places.map((i) => known[i] ?? fail()) }
        }),
      ),
    }
  } catch {
    return undefined
  }
}

function whole(value: unknown): number {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : fail()
}

function fail(): never {
  throw new TypeError('not a snapshot')
}

/**
 * Verifies and reads a feed, for programs that carry it elsewhere, such as into a key-value store.
 * @param keys secrets by the id of their key
 * @throws SluiceError `SLUICE_FEED_SIGNATURE` when none of the keys has signed it, `SLUICE_FEED_IGNORED` when it is no
 *   feed that this version can read
 */
export async function readFeed(
  feed: string,
  keys: Readonly<Record<string, FeedSecret>>,
): Promise<FeedSnapshot> {
  return readVerified(feed, verifyingKeys(keys))
}

/** {@link readFeed} with keys that were checked. */
export async function readVerified(
  feed: string,
  keys: ReadonlyMap<string, SigningKey>,
): Promise<FeedSnapshot> {
  const text = await verified(feed, keys)
  if (text === undefined) {
    throw new SluiceError('SLUICE_FEED_SIGNATURE', 'The block feed is not signed by any of the `keys`')
  }
  const snapshot = decodeSnapshot(text)
  if (!snapshot)
    throw new SluiceError('SLUICE_FEED_IGNORED', 'The block feed is not in a format that is known')
  return snapshot
}
