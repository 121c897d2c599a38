import {
  type Check,
  type ConsumeOptions,
  MemoryStore,
  type Refund,
  type ResolvedPolicy,
  type Store,
  type Verdict,
} from '@sluice/core'

/** Counts in memory, against one location's part of every policy. */
export class ShareStore implements Store {
  readonly shared = false
  readonly #locations: number
  readonly #memory: MemoryStore
  readonly #shares = new WeakMap<ResolvedPolicy, ResolvedPolicy>()

  constructor(locations: number, memory = new MemoryStore()) {
    this.#locations = locations
    this.#memory = memory
  }

  consume(checks: readonly Check[], options: ConsumeOptions): Promise<readonly Verdict[]> {
    return this.#memory.consume(checks.map(this.#shared), options)
  }

  peek(checks: readonly Check[]): Promise<readonly Verdict[]> {
    return this.#memory.peek(checks.map(this.#shared))
  }

  refund(refunds: readonly Refund[]): Promise<void> {
    return this.#memory.refund(refunds.map(this.#shared))
  }

  reset(keys: readonly string[]): Promise<void> {
    return this.#memory.reset(keys)
  }

  close(): Promise<void> {
    return this.#memory.close()
  }

  readonly #shared = <T extends { readonly policy: ResolvedPolicy }>(part: T): T => {
    let share = this.#shares.get(part.policy)
    if (!share) {
      share = part.policy.share(this.#locations)
      this.#shares.set(part.policy, share)
    }
    return { ...part, policy: share }
  }
}
