import { CheckMaker } from '../check-maker.js'
import { type Decision, decideFrom, decideWithoutPolicy, type Subject } from '../decision.js'
import { decide } from '../engine.js'
import { type ErrorCode, show } from '../errors.js'
import { encodeName } from '../key.js'
import type { ResolvedLimiterOptions } from '../limiter-options.js'
import type { ResolvedPolicy } from '../policy.js'
import { attachReceipts } from '../receipt.js'
import type { Check, ConsumeOptions, Store } from '../store.js'
import { asError } from './as-error.js'
import { type FailureMode, modeFor, type OnStoreError, strictest } from './failure-mode.js'
import { localStoreOf } from './local-store.js'

/** A request that the store could not count, or could not be asked to, for want of its plan. */
export interface Uncounted {
  readonly subject: Subject
  readonly policies: readonly ResolvedPolicy[]
  /** Its key, encoded. */
  readonly owner: string
  readonly cost: number
  readonly method: 'consume' | 'peek'
}

/** Decides requests in place of a store that failed, as `onStoreError` says. */
export class Fallback {
  readonly #limiter: object & { readonly name: string }
  readonly #checks: CheckMaker
  readonly #store: Store
  readonly #options: ResolvedLimiterOptions
  readonly #consumeOptions: ConsumeOptions
  readonly #nodes: () => number | undefined
  readonly #warn: (code: ErrorCode, message: string) => void
  /** This process's part of each policy, and of how many parts it is one. */
  readonly #shares = new WeakMap<
    ResolvedPolicy,
    { readonly nodes: number; readonly policy: ResolvedPolicy }
  >()

  /**
   * @param limiter whose requests they are
   * @param store the one that may fail, as the limiter was given it
   * @param nodes how many processes share it; undefined while that is not known
   */
  constructor(
    limiter: object & { readonly name: string },
    store: Store,
    options: ResolvedLimiterOptions,
    consumeOptions: ConsumeOptions,
    nodes: () => number | undefined,
    warn: (code: ErrorCode, message: string) => void,
  ) {
    this.#limiter = limiter
    this.#checks = new CheckMaker(encodeName(limiter.name))
    this.#store = store
    this.#options = options
    this.#consumeOptions = consumeOptions
    this.#nodes = nodes
    this.#warn = warn
  }

  /**
   * Gets ready for policies whose mode may be `'local'`, so that no mistake shows first when the store is away.
   * @returns whether there are any
   * @throws SluiceError for a policy that has no part of this size
   */
  prepare(policies: readonly ResolvedPolicy[]): boolean {
    const local = policies.filter((policy) => {
      const mode = policy.onStoreError ?? this.#options.onStoreError
      return mode === 'local' || typeof mode === 'function'
    })
    for (const policy of local) this.#shareOf(policy)
    return local.length > 0
  }

  async decide(request: Uncounted, nowMs: number, error: Error): Promise<Decision> {
    const { subject, policies, owner, cost, method } = request
    const ownMode = this.#modeOf(this.#options.onStoreError, error)
    // A shadow refuses nothing, whatever happens to it.
    const modes = policies.map(({ shadow, onStoreError }): FailureMode => {
      return shadow ? 'allow' : onStoreError === undefined ? ownMode : this.#modeOf(onStoreError, error)
    })
    // The limiter's own mode stands for its blocks, and for policies that nobody knows.
    const mode = strictest(this.#options.blocks || modes.length === 0 ? [...modes, ownMode] : modes)
    const shares =
      mode === 'deny' ? undefined : this.#sharesOf(policies.filter((_, i) => modes[i] === 'local'))
    if (!shares) return decideWithoutPolicy(subject, 'store-error', false, nowMs)
    // No count is needed to refuse what could never pass: all of limit 0, and a cost that nothing holds.
    const barring = policies.filter((policy) => !policy.shadow && (policy.limit === 0 || cost > policy.burst))
    if (barring.length > 0) {
      const checks = this.#checks.make(barring, owner, cost)
      const unused = checks.map(() => undefined)
      return decideFrom(subject, barring, decide(checks, unused, nowMs * 1000), 'local')
    }
    if (mode !== 'local' || shares.length === 0) {
      return decideWithoutPolicy(subject, 'store-error', true, nowMs)
    }
    this.#warnIfNodesUnknown()
    const store = localStoreOf(this.#store)
    const checks: readonly Check[] = this.#checks.make(shares, owner, cost)
    const verdicts = await store[method](checks, this.#consumeOptions)
    const decision = decideFrom(subject, shares, verdicts, 'local')
    return method === 'consume' && decision.allowed
      ? attachReceipts(decision, [{ limiter: this.#limiter, store, checks, verdicts, spent: false }])
      : decision
  }

  /** Warns that `'local'` multiplies every limit by the number of processes, unless that number is known. */
  #warnIfNodesUnknown(): void {
    if (this.#nodes() !== undefined) return
    this.#warn(
      'SLUICE_NODES_UNKNOWN',
      `limiter ${show(this.#limiter.name)} counts by \`onStoreError: 'local'\` while its store is away, which has not told yet how many processes share it, so that each serves its whole limits: set \`nodes\` to the number of processes`,
    )
  }

  #modeOf(onStoreError: OnStoreError, error: Error): FailureMode {
    return modeFor(onStoreError, error, (mistake) => {
      this.#warn('SLUICE_REQUEST_FUNCTION', `limiter ${show(this.#limiter.name)} denies: ${mistake}`)
    })
  }

  /** This process's parts, or undefined if a policy has none of that size. */
  #sharesOf(policies: readonly ResolvedPolicy[]): readonly ResolvedPolicy[] | undefined {
    try {
      return policies.map((policy) => this.#shareOf(policy))
    } catch (error) {
      this.#warn('SLUICE_BAD_OPTION', `limiter ${show(this.#limiter.name)} denies: ${asError(error).message}`)
      return undefined
    }
  }

  #shareOf(policy: ResolvedPolicy): ResolvedPolicy {
    const nodes = this.#nodes() ?? 1
    let share = this.#shares.get(policy)
    if (share?.nodes !== nodes) {
      share = { nodes, policy: policy.share(nodes) }
      this.#shares.set(policy, share)
    }
    return share.policy
  }
}
