import { badOption } from '@sluice/core'
import type { FeedEntry, FeedSnapshot } from '../feed/snapshot.js'

/** A pair of a CloudFront KeyValueStore, as `list-keys` shows it and `update-keys` takes it. */
export interface KeyValuePair {
  readonly Key: string
  readonly Value: string
}

/** One call of `aws cloudfront-keyvaluestore update-keys`, which is done as a whole or not at all. */
export interface KeyValueChange {
  readonly Puts: readonly KeyValuePair[]
  readonly Deletes: readonly { readonly Key: string }[]
}

/** Limits of a KeyValueStore: per call, in bytes of a key, of a value, and of all. */
const mostPerCall = 50
const longestKey = 512
const longestValue = 1000
const largestStore = 5_000_000

const utf8 = new TextEncoder()

/**
 * Tells how to change a CloudFront KeyValueStore so that it holds what a feed lists, for the function that
 * `cloudFrontFunction` writes. Where all does not fit, the keys with the longest waits are held.
 * @param snapshot what `readFeed` gives
 * @param present what the store holds now. Default: nothing
 * @returns calls to make in their order, each with the ETag that the one before has answered
 */
export function keyValueChanges(
  snapshot: FeedSnapshot,
  present: Iterable<KeyValuePair> = [],
): readonly KeyValueChange[] {
  if (!Array.isArray(snapshot?.entries)) throw badOption('snapshot', snapshot, 'what `readFeed` gives')
  const held = new Map([...present].map(({ Key, Value }) => [Key, Value]))
  const wanted = new Map<string, string>()
  let bytes = 0
  for (const entry of [...snapshot.entries].sort((a, b) => b.waitMs - a.waitMs)) {
    const Key = keyOf(entry)
    const Value = contentOf(snapshot, entry)
    const length = utf8.encode(Key).length
    const size = length + utf8.encode(Value).length
    if (length > longestKey || size - length > longestValue || bytes + size > largestStore) continue
    bytes += size
    wanted.set(Key, Value)
  }
  // What goes comes first, to make room.
  const deletes = [...held.keys()].filter((Key) => !wanted.has(Key)).map((Key) => ({ Key }))
  const puts = [...wanted]
    .filter(([Key, Value]) => held.get(Key) !== Value)
    .map(([Key, Value]) => ({ Key, Value }))
  return [
    ...inCalls(deletes).map((Deletes) => ({ Puts: [], Deletes })),
    ...inCalls(puts).map((Puts) => ({ Puts, Deletes: [] })),
  ]
}

/** The key of an entry; limiters may share clients. */
function keyOf({ limiter, key }: FeedEntry): string {
  return `${limiter}/${key}`
}

/** When it is over, in seconds since 1970, and what the reply tells of each policy: its name, quota and window. */
function contentOf({ issuedAtMs }: FeedSnapshot, { waitMs, policies }: FeedEntry): string {
  return JSON.stringify([
    Math.ceil((issuedAtMs + waitMs) / 1000),
    ...policies.map(({ name, limit, windowMs, burst }) => [
      name,
      burst,
      Math.ceil(burst === limit ? windowMs / 1000 : (burst * windowMs) / (limit * 1000)),
    ]),
  ])
}

function inCalls<T>(all: readonly T[]): T[][] {
  return Array.from({ length: Math.ceil(all.length / mostPerCall) }, (_, i) =>
    all.slice(i * mostPerCall, (i + 1) * mostPerCall),
  )
}
