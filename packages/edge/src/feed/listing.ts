import type { Decision, PolicyDecision } from '@sluice/core'
import type { FeedEntry, FeedPolicy, FeedSnapshot } from './snapshot.js'

/** A key that is refused until a moment, by the clock of this edge. */
interface Listed {
  readonly entry: FeedEntry
  readonly untilMs: number
  /** The same moment by the clock of the origin. */
  readonly originUntilMs: number
}

/** The latest snapshot of one publisher. */
interface Held {
  readonly sequence: number
  readonly heardMs: number
  readonly byLimiter: ReadonlyMap<string, Map<string, Listed>>
}

/** Processes of the origin that serve a feed each, as many as are told apart; the one heard longest ago gives way. */
const mostSources = 64

/** The keys that are refused, of the latest snapshots of all publishers. */
export class Listing {
  readonly #maxStaleMs: number
  /** The one heard longest ago first. */
  readonly #sources = new Map<string, Held>()

  constructor(maxStaleMs: number) {
    this.#maxStaleMs = maxStaleMs
  }

  get size(): number {
    let size = 0
    for (const { byLimiter } of this.#sources.values()) {
      for (const keys of byLimiter.values()) size += keys.size
    }
    return size
  }

  /**
   * Takes a snapshot in place of the last of its publisher.
   * @param issuedMs when it was issued at the latest, by the clock of this edge
   * @returns false for one that is older than that
   */
  take({ source, sequence, issuedAtMs, entries }: FeedSnapshot, issuedMs: number): boolean {
    const last = this.#sources.get(source)
    if (last && sequence < last.sequence) return false
    const byLimiter = new Map<string, Map<string, Listed>>()
    for (const entry of entries) {
      const { limiter, key, waitMs } = entry
      const keys = byLimiter.get(limiter) ?? new Map<string, Listed>()
      byLimiter.set(limiter, keys)
      keys.set(key, { entry, untilMs: issuedMs + waitMs, originUntilMs: issuedAtMs + waitMs })
    }
    this.#sources.delete(source)
    this.#sources.set(source, { sequence, heardMs: issuedMs, byLimiter })
    if (this.#sources.size > mostSources) {
      const [oldest] = this.#sources.keys()
      this.#sources.delete(oldest as string)
    }
    return true
  }

  /** The refusal of a key, by the publisher that refuses it for longest; undefined if none does. */
  find(limiter: string, key: string, nowMs: number): Decision | undefined {
    let longest: Listed | undefined
    for (const [source, { heardMs, byLimiter }] of this.#sources) {
      if (nowMs - heardMs > this.#maxStaleMs) {
        this.#sources.delete(source)
        continue
      }
      const keys = byLimiter.get(limiter)
      const listed = keys?.get(key)
      if (listed && listed.untilMs <= nowMs) keys?.delete(key)
      else if (listed && listed.untilMs > (longest?.untilMs ?? 0)) longest = listed
    }
    return longest && refusalOf(longest, nowMs)
  }

  clear(): void {
    this.#sources.clear()
  }
}

/** What the origin would decide, as far as the feed tells. */
function refusalOf({ entry, untilMs, originUntilMs }: Listed, nowMs: number): Decision {
  const waitMs = untilMs - nowMs
  const waits = { retryAfterMs: waitMs, replenishAfterMs: waitMs, resetAfterMs: waitMs }
  const policies = entry.policies.map((policy) => policyDecision(policy, waits, originUntilMs))
  // Of policies with one wait, any has the longest.
  const limit = policies[0]?.burst ?? Number.POSITIVE_INFINITY
  return {
    allowed: false,
    reason: policies.length === 0 ? 'blocked' : 'quota',
    source: 'deny-cache',
    degraded: false,
    key: entry.key,
    limit,
    remaining: 0,
    ...waits,
    delayMs: 0,
    atMs: originUntilMs - waitMs,
    policies,
  }
}

type Waits = Pick<PolicyDecision, 'retryAfterMs' | 'replenishAfterMs' | 'resetAfterMs'>

function policyDecision(policy: FeedPolicy, waits: Waits, originUntilMs: number): PolicyDecision {
  return {
    ...policy,
    ...waits,
    allowed: false,
    remaining: 0,
    moreAtUs: originUntilMs * 1000,
    delayMs: 0,
    shadow: false,
  }
}
