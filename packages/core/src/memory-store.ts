import { type ClockUs, processClockUs } from './clock.js'
import { decide } from './engine.js'
import { badOption, refuseUnknownOptions, SluiceError } from './errors.js'
import type { ResolvedPolicy } from './policy.js'
import type { Check, ConsumeOptions, Store, Verdict } from './store.js'

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
  /** Where the entry stands: `levels[level][place]`. */
  level: number
  place: number
}

/** Keys are ranked by the quarters of their limit that they have used; the last level is that of exhausted keys. */
const levelCount = 5
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
  readonly #levels: Entry[][] = Array.from({ length: levelCount }, () => [])
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
    const outcomes = this.#decide(checks, nowUs)
    for (let i = 0; i < checks.length; i++) {
      const { next, remaining } = outcomes[i] as (typeof outcomes)[number]
      if (next !== undefined) this.#put(checks[i] as Check, next, remaining, nowUs, options)
    }
    return outcomes
  }

  async peek(checks: readonly Check[]): Promise<readonly Verdict[]> {
    return this.#decide(checks, this.#now())
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

  #decide(checks: readonly Check[], nowUs: number) {
    return decide(
      checks,
      checks.map(({ key }) => this.#maps[this.#mapOf(key)]?.get(key)?.state),
      nowUs,
    )
  }

  #put({ key, policy }: Check, state: unknown, remaining: number, nowUs: number, options?: ConsumeOptions): void {
    const level = Math.floor((1 - remaining / policy.burst) * (levelCount - 1))
    const map = (this.#maps[this.#mapOf(key)] ??= new Map())
    let entry = map.get(key)
    if (!entry) {
      if (this.size >= this.#maxKeys) this.#evict(nowUs, options)
      entry = { key, policy, state, level, place: -1 }
      map.set(key, entry)
      this.#rank(entry, level)
      return
    }
    entry.policy = policy
    entry.state = state
    if (entry.level !== level) {
      this.#unrank(entry)
      this.#rank(entry, level)
    }
  }

  /**
   * Forgets, of a few keys of each level, the one with the smallest used share of its limit, ties to the one that is
   * whole again soonest. Levels date from the last charge, so a key of a high level may be whole by now.
   */
  #evict(nowUs: number, options?: ConsumeOptions): void {
    let victim: { entry: Entry; share: number; resetUs: number } | undefined
    for (const level of this.#levels) {
      for (let i = 0; i < sampleSize && level.length > 0 && victim?.resetUs !== 0; i++) {
        const entry = level[Math.floor(Math.random() * level.length)] as Entry
        const { policy, state } = entry
        const { remaining, resetUs } = policy.step(state, nowUs, 0, policy.rule)
        const share = 1 - remaining / policy.burst
        if (resetUs === 0 || !victim || share < victim.share || (share === victim.share && resetUs < victim.resetUs)) {
          victim = { entry, share, resetUs }
        }
      }
    }
    if (!victim) return
    this.#unrank(victim.entry)
    this.#maps[this.#mapOf(victim.entry.key)]?.delete(victim.entry.key)
    if (victim.share === 1) {
      options?.warn?.(
        'SLUICE_MEMORY_FULL',
        `the MemoryStore is full of exhausted keys and had to free one: raise \`maxKeys\` (${this.#maxKeys})`,
      )
    }
  }

  #rank(entry: Entry, level: number): void {
    entry.level = level
    entry.place = (this.#levels[level] as Entry[]).push(entry) - 1
  }

  #unrank({ level, place }: Entry): void {
    const entries = this.#levels[level] as Entry[]
    const last = entries.pop() as Entry
    if (place === entries.length) return
    entries[place] = last
    last.place = place
  }

  #mapOf(key: string): number {
    let hash = 0
    for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
    return (hash >>> 0) % this.#maps.length
  }
}
