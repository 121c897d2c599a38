import { checkWhole } from './check-whole.js'
import { type ClockUs, processClockUs } from './clock.js'
import { decide, type Outcome } from './engine.js'
import { badOption, refuseUnknownOptions, SluiceError } from './errors.js'
import { KeyTable, none } from './memory-store/key-table.js'
import type { ResolvedPolicy } from './policy.js'
import type { Check, ConsumeOptions, Refund, Store, Verdict } from './store.js'

/** Options of {@link MemoryStore}. */
export interface MemoryStoreOptions {
  /** The most keys to hold, 1 to 10^7; beyond it the least used of a sample is forgotten. Default 100,000. */
  maxKeys?: number
  /** The clock, in whole microseconds since the epoch; for tests. Default: the process's monotonic clock. */
  nowUs?: ClockUs
}

/** How many keys of each rank an eviction compares. */
const sampleSize = 4

/**
 * What a MemoryStore would answer to `consume` or `peek`, without the turn that a promise takes; undefined of any other
 * store, and of one whose method is no longer its own.
 */
export let answerAtOnce: (
  store: Store,
  method: 'consume' | 'peek',
  checks: readonly Check[],
  options: ConsumeOptions,
) => readonly Verdict[] | undefined

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
  #keys: KeyTable
  #closed = false

  constructor(options: MemoryStoreOptions = {}) {
    refuseUnknownOptions('MemoryStore', options, ['maxKeys', 'nowUs'])
    const { maxKeys = 100_000, nowUs = processClockUs } = options
    this.#maxKeys = checkWhole('maxKeys', maxKeys, 1, 1e7)
    if (typeof nowUs !== 'function') throw badOption('nowUs', nowUs, 'a function that returns microseconds')
    this.#nowUs = nowUs
    this.#keys = new KeyTable(maxKeys)
  }

  /** How many keys are held now. */
  get size(): number {
    return this.#keys.size
  }

  async consume(checks: readonly Check[], options?: ConsumeOptions): Promise<readonly Verdict[]> {
    return this.#consume(checks, options)
  }

  async peek(checks: readonly Check[]): Promise<readonly Verdict[]> {
    return this.#peek(checks)
  }

  async refund(refunds: readonly Refund[]): Promise<void> {
    const nowUs = this.#now()
    for (const refund of refunds) {
      const slot = this.#keys.find(refund)
      if (slot === none) continue
      const state = refund.policy.refund(
        this.#keys.stateOf(slot, refund.policy),
        nowUs,
        refund,
        refund.policy.rule,
      )
      if (state === undefined) continue
      const policy = this.#keys.policyOf(slot)
      const { remaining } = policy.step(state, nowUs, 0, policy.rule)
      this.#keys.write(slot, policy, state, usedShare(policy, remaining))
    }
  }

  async reset(keys: readonly string[]): Promise<void> {
    this.#now()
    for (const key of keys) {
      const slot = this.#keys.find({ key })
      if (slot !== none) this.#keys.remove(slot)
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#keys = new KeyTable(1)
  }

  static {
    const { consume, peek } = MemoryStore.prototype
    answerAtOnce = (store, method, checks, options) => {
      if (!(store instanceof MemoryStore)) return undefined
      if (method === 'consume') return store.consume === consume ? store.#consume(checks, options) : undefined
      return store.peek === peek ? store.#peek(checks) : undefined
    }
  }

  #consume(checks: readonly Check[], options?: ConsumeOptions): readonly Verdict[] {
    const nowUs = this.#now()
    const slots = this.#find(checks)
    const outcomes = decide(checks, this.#states(checks, slots), nowUs)
    let evicted = false
    for (let i = 0; i < checks.length; i++) {
      const { next, remaining } = outcomes[i] as Outcome
      if (next === undefined) continue
      const check = checks[i] as Check
      let slot = slots[i] as number
      // Another key of this call may be the same, or have taken the place of this one.
      if (slot === none || evicted) slot = this.#keys.find(check)
      if (slot === none) {
        if (this.size >= this.#maxKeys) {
          this.#evict(nowUs, options)
          evicted = true
        }
        slot = this.#keys.add(check)
      }
      this.#keys.write(slot, check.policy, next, usedShare(check.policy, remaining))
    }
    return outcomes
  }

  #peek(checks: readonly Check[]): readonly Verdict[] {
    const nowUs = this.#now()
    return decide(checks, this.#states(checks, this.#find(checks)), nowUs)
  }

  #now(): number {
    if (this.#closed) throw new SluiceError('SLUICE_CLOSED', 'This MemoryStore was closed')
    return this.#nowUs()
  }

  #find(checks: readonly Check[]): readonly number[] {
    const slots = new Array<number>(checks.length)
    for (let i = 0; i < checks.length; i++) slots[i] = this.#keys.find(checks[i] as Check)
    return slots
  }

  #states(checks: readonly Check[], slots: readonly number[]): readonly unknown[] {
    const states = new Array<unknown>(checks.length)
    for (let i = 0; i < checks.length; i++) {
      const slot = slots[i] as number
      if (slot !== none) states[i] = this.#keys.stateOf(slot, (checks[i] as Check).policy)
    }
    return states
  }

  /**
   * Forgets, of a few keys of each rank, the one with the smallest used share of its limit, ties to the one that is
   * whole again soonest. Ranks date from the last charge, so a key that was exhausted may be whole by now.
   */
  #evict(nowUs: number, options?: ConsumeOptions): void {
    let victim = none
    let victimShare = 0
    let victimResetUs = 0
    for (const slot of this.#keys.sample(sampleSize)) {
      const policy = this.#keys.policyOf(slot)
      const { remaining, resetUs } = policy.step(this.#keys.stateOf(slot, policy), nowUs, 0, policy.rule)
      const share = usedShare(policy, remaining)
      if (victim === none || share < victimShare || (share === victimShare && resetUs < victimResetUs)) {
        victim = slot
        victimShare = share
        victimResetUs = resetUs
        if (resetUs === 0) break
      }
    }
    this.#keys.remove(victim)
    if (victimShare === 1) {
      options?.warn?.(
        'SLUICE_MEMORY_FULL',
        `the MemoryStore is full of exhausted keys and had to free one: raise \`maxKeys\` (${this.#maxKeys})`,
      )
    }
  }
}

function usedShare(policy: ResolvedPolicy, remaining: number): number {
  return 1 - remaining / policy.burst
}
