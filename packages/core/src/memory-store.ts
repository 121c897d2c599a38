import { type ClockUs, processClockUs } from './clock.js'
import { decide, type Outcome } from './engine.js'
import { badOption, refuseUnknownOptions, SluiceError } from './errors.js'
import type { ResolvedPolicy } from './policy.js'
import type { Check, ConsumeOptions, Refund, Store, Verdict } from './store.js'

/** Options of {@link MemoryStore}. */
export interface MemoryStoreOptions {
  /** The most keys to hold, 1 to 10^7; beyond it the least used of a sample is forgotten. Default 100,000. */
  maxKeys?: number
  /** The clock, in whole microseconds since the epoch; for tests. Default: the process's monotonic clock. */
  nowUs?: ClockUs
}

interface Entry {
  readonly key: string
  policy: ResolvedPolicy
  state: unknown
  /** The entry is `levels[level][place]`. */
  level: number
  place: number
}

/** Keys are ranked by the quarters of their limit that they have used; the level of exhausted keys is the last. */
const exhausted = 4
/** The place of an entry that was forgotten. */
const gone = -1
/** How many keys of each level an eviction compares. */
const sampleSize = 4
/** Small maps grow and tidy up without a pause that a request could notice. */
const keysPerMap = 256

/**
 * Counts in this process alone: nothing to install, and right for one process. Several processes that each have their
 * own admit up to their number times the limit; they need a shared store.
 *
 * Holds at most `maxKeys` keys and no timers, so it never keeps a process alive. At `maxKeys` a new key takes the
 * place of one that is whole again, else of one that has used little of its limit: a flood of fresh keys frees no
 * exhausted one while any other is left. Having to forget an exhausted key is a warning, `SLUICE_MEMORY_FULL`.
 */
export class MemoryStore implements Store {
  readonly shared = false
  readonly #maxKeys: number
  readonly #nowUs: ClockUs
  readonly #maps: (Map<string, Entry> | undefined)[]
  readonly #levels: Entry[][] = Array.from({ length: exhausted + 1 }, () => [])
  #closed = false

  constructor(options: MemoryStoreOptions = {}) {
    refuseUnknownOptions('MemoryStore', options, ['maxKeys', 'nowUs'])
    const { maxKeys = 100_000, nowUs = processClockUs } = options
    if (!Number.isInteger(maxKeys) || maxKeys < 1 || maxKeys > 1e7) {
      throw badOption('maxKeys', maxKeys, 'a whole number from 1 to 10,000,000')
    }
    if (typeof nowUs !== 'function') throw badOption('nowUs', nowUs, 'a function that returns microseconds')
    this.#maxKeys = maxKeys
    this.#nowUs = nowUs
    this.#maps = new Array(Math.ceil(maxKeys / keysPerMap)).fill(undefined)
  }

  /** How many keys are held now. */
  get size(): number {
    return this.#levels.reduce((sum, level) => sum + level.length, 0)
  }

  async consume(checks: readonly Check[], options?: ConsumeOptions): Promise<readonly Verdict[]> {
    const nowUs = this.#now()
    const entries = checks.map(({ key }) => this.#find(key))
    const outcomes = decide(checks, entries.map(stateOf), nowUs)
    for (let i = 0; i < checks.length; i++) {
      const { next, remaining } = outcomes[i] as Outcome
      if (next === undefined) continue
      const { key, policy } = checks[i] as Check
      const level = Math.floor(usedShare(policy, remaining) * exhausted)
      const entry = entries[i]
      if (entry && entry.place !== gone) {
        entry.policy = policy
        entry.state = next
        this.#move(entry, level)
      } else {
        if (this.size >= this.#maxKeys) this.#evict(nowUs, options)
        this.#add({ key, policy, state: next, level, place: gone })
      }
    }
    return outcomes
  }

  async peek(checks: readonly Check[]): Promise<readonly Verdict[]> {
    const nowUs = this.#now()
    return decide(
      checks,
      checks.map(({ key }) => stateOf(this.#find(key))),
      nowUs,
    )
  }

  async refund(refunds: readonly Refund[]): Promise<void> {
    const nowUs = this.#now()
    for (const refund of refunds) {
      const entry = this.#find(refund.key)
      const state = entry && refund.policy.refund(entry.state, nowUs, refund, refund.policy.rule)
      if (!entry || state === undefined) continue
      entry.state = state
      const { remaining } = entry.policy.step(state, nowUs, 0, entry.policy.rule)
      this.#move(entry, Math.floor(usedShare(entry.policy, remaining) * exhausted))
    }
  }

  async reset(keys: readonly string[]): Promise<void> {
    this.#now()
    for (const key of keys) {
      const entry = this.#find(key)
      if (entry) this.#remove(entry)
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#maps.fill(undefined)
    for (const level of this.#levels) level.length = 0
  }

  #now(): number {
    if (this.#closed) throw new SluiceError('SLUICE_CLOSED', 'This MemoryStore was closed')
    return this.#nowUs()
  }

  /**
   * Forgets, of a few keys of each level, the one with the smallest used share of its limit, ties to the one that is
   * whole again soonest. Levels date from the last charge, so a key of a high level may be whole by now.
   */
  #evict(nowUs: number, options?: ConsumeOptions): void {
    let victim: { entry: Entry; share: number; resetUs: number } | undefined
    for (const level of this.#levels) {
      const start = Math.floor(Math.random() * level.length)
      const stride = Math.max(1, Math.floor(level.length / sampleSize))
      for (let i = 0; i < Math.min(sampleSize, level.length) && victim?.resetUs !== 0; i++) {
        const entry = level[(start + i * stride) % level.length] as Entry
        const { policy, state } = entry
        const { remaining, resetUs } = policy.step(state, nowUs, 0, policy.rule)
        const share = usedShare(policy, remaining)
        if (!victim || share < victim.share || (share === victim.share && resetUs < victim.resetUs)) {
          victim = { entry, share, resetUs }
        }
      }
    }
    if (!victim) return
    this.#remove(victim.entry)
    if (victim.share === 1) {
      options?.warn?.(
        'SLUICE_MEMORY_FULL',
        `the MemoryStore is full of exhausted keys and had to free one: raise \`maxKeys\` (${this.#maxKeys})`,
      )
    }
  }

  #find(key: string): Entry | undefined {
    return this.#maps[this.#mapOf(key)]?.get(key)
  }

  #add(entry: Entry): void {
    const map = this.#mapOf(entry.key)
    this.#maps[map] ??= new Map()
    this.#maps[map].set(entry.key, entry)
    this.#rank(entry)
  }

  #remove(entry: Entry): void {
    this.#maps[this.#mapOf(entry.key)]?.delete(entry.key)
    this.#unrank(entry)
  }

  #move(entry: Entry, level: number): void {
    if (entry.level === level) return
    this.#unrank(entry)
    entry.level = level
    this.#rank(entry)
  }

  #rank(entry: Entry): void {
    entry.place = (this.#levels[entry.level] as Entry[]).push(entry) - 1
  }

  /** Takes an entry out of its level; the last one there moves to its place. */
  #unrank(entry: Entry): void {
    const level = this.#levels[entry.level] as Entry[]
    const last = level.pop() as Entry
    if (last !== entry) {
      level[entry.place] = last
      last.place = entry.place
    }
    entry.place = gone
  }

  /** FNV-1a. Aimed collisions make one map larger, and nothing else: keys are ranked across all maps. */
  #mapOf(key: string): number {
    let hash = 0
    for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
    return (hash >>> 0) % this.#maps.length
  }
}

function stateOf(entry: Entry | undefined): unknown {
  return entry?.state
}

function usedShare(policy: ResolvedPolicy, remaining: number): number {
  return 1 - remaining / policy.burst
}
