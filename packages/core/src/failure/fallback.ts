import { type Decision, decideFrom, decideWithoutPolicy, type Subject } from '../decision.js'
import { decide } from '../engine.js'
import { type ErrorCode, show } from '../errors.js'
import type { ResolvedLimiterOptions } from '../limiter-options.js'
import type { ResolvedPolicy } from '../policy.js'
import { attachReceipts } from '../receipt.js'
import { type Check, type ConsumeOptions, checksOf, type Store } from '../store.js'
import { type FailureMode, modeFor, type OnStoreError, strictest } from './failure-mode.js'
import { localStoreOf } from './local-store.js'

/** A request that the store could not count, or could not be asked to, for want of its plan. */
export interface Uncounted {
  readonly subject: Subject
  readonly policies: readonly ResolvedPolicy[]
  /** The beginning of its keys. */
  readonly prefix: string
  readonly cost: number
  readonly method: 'consume' | 'peek'
}

/** Decides requests in place of a store that failed, as `onStoreError` says. */
export class Fallback {
  readonly #limiter: object & { readonly name: string }
  readonly #store: Store
  readonly #options: ResolvedLimiterOptions
  readonly #consumeOptions: ConsumeOptions
  readonly #warn: (code: ErrorCode, message: string) => void
  /** This process's part of each policy. */
  readonly #shares = new WeakMap<ResolvedPolicy, ResolvedPolicy>()

  /**
   * @param limiter whose requests they are
   * @param store the one that may fail, as the limiter was given it
   */
  constructor(
    limiter: object & { readonly name: string },
    store: Store,
    options: ResolvedLimiterOptions,
    consumeOptions: ConsumeOptions,
    warn: (code: ErrorCode, message: string) => void,
  ) {
    this.#limiter = limiter
    this.#store = store
    this.#options = options
    this.#consumeOptions = consumeOptions
    this.#warn = warn
  }

  /**
   * Gets ready for policies whose mode may be `'local'`, so that no mistake shows first when the store is away.
   * @throws SluiceError for a policy that has no part of this size
   */
  prepare(policies: readonly ResolvedPolicy[]): void {
    for (const policy of policies) {
      const mode = policy.onStoreError ?? this.#options.onStoreError
      if (mode === 'local') this.#warnIfNodesUnknown()
      if (mode === 'local' || typeof mode === 'function') this.#shareOf(policy)
    }
  }

  async decide(request: Uncounted, nowMs: number, error: Error): Promise<Decision> {
    const { subject, policies, prefix, cost, method } = request
    const ownMode = this.#modeOf(this.#options.onStoreError, error)
    // A shadow refuses nothing, whatever happens to it.
    const modes = policies.map(({ shadow, onStoreError }): FailureMode => {
      return shadow ? 'allow' : onStoreError === undefined ? ownMode : this.#modeOf(onStoreError, error)
    })
    // The limiter's own mode stands for its blocks, and for policies that nobody knows.
    const mode = strictest(this.#options.blocks || modes.length === 0 ? [...modes, ownMode] : modes)
    const shares = policies.filter((_, i) => modes[i] === 'local').map((policy) => this.#shareOf(policy))
    if (mode === 'deny') return decideWithoutPolicy(subject, 'store-error', false, nowMs)
    // No count is needed to refuse what could never pass: all of limit 0, and a cost that nothing holds.
    const barring = policies.filter((policy) => !policy.shadow && (policy.limit === 0 || cost > policy.burst))
    if (barring.length > 0) {
      const checks = checksOf(barring, prefix, cost)
      const unused = checks.map(() => undefined)
      return decideFrom(subject, barring, decide(checks, unused, nowMs * 1000), 'local')
    }
    if (mode !== 'local' || shares.length === 0) {
      return decideWithoutPolicy(subject, 'store-error', true, nowMs)
    }
    this.#warnIfNodesUnknown()
    const store = localStoreOf(this.#store)
    const checks: readonly Check[] = checksOf(shares, prefix, cost)
    const verdicts = await store[method](checks, this.#consumeOptions)
    const decision = decideFrom(subject, shares, verdicts, 'local')
    return method === 'consume' && decision.allowed
      ? attachReceipts(decision, [{ limiter: this.#limiter, store, checks, verdicts, spent: false }])
      : decision
  }

  /** Warns that `'local'` multiplies every limit by the number of processes, unless that number is given. */
  #warnIfNodesUnknown(): void {
    if (this.#options.nodes !== undefined) return
    this.#warn(
      'SLUICE_NODES_UNKNOWN',
      `limiter ${show(this.#limiter.name)} counts by \`onStoreError: 'local'\` while its store is away, and each process then serves its whole limits: set \`nodes\` to the number of processes`,
    )
  }

  #modeOf(onStoreError: OnStoreError, error: Error): FailureMode {
    return modeFor(onStoreError, error, (mistake) => {
      this.#warn('SLUICE_REQUEST_FUNCTION', `limiter ${show(this.#limiter.name)} denies: ${mistake}`)
    })
  }

  #shareOf(policy: ResolvedPolicy): ResolvedPolicy {
    let share = this.#shares.get(policy)
    if (!share) {
      share = policy.share(this.#options.nodes ?? 1)
      this.#shares.set(policy, share)
    }
    return share
  }
}
