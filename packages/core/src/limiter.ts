import { blockPolicy } from './algorithms/block/block.js'
import { CENTURY_US } from './algorithms/bucket.js'
import { CheckMaker } from './check-maker.js'
import { processClockUs } from './clock.js'
import { isClusterWorker } from './cluster-worker.js'
import { type Decision, decideFrom, decideWithoutPolicy } from './decision.js'
import { type Duration, parseDuration } from './duration.js'
import { badOption, type ErrorCode, SluiceError, show } from './errors.js'
import { asError } from './failure/as-error.js'
import { checkVerdicts } from './failure/check-verdicts.js'
import { Fallback, type Uncounted } from './failure/fallback.js'
import { type GuardedStore, guardOf, type Watcher } from './failure/guarded-store.js'
import { localStoreOf } from './failure/local-store.js'
import { encodeName } from './key.js'
import type { Layers } from './layers.js'
import { badCost, type LimitRequest, ownerOf } from './limit-request.js'
import { claimName, freeName } from './limiter-names.js'
import { type LimiterOptions, type ResolvedLimiterOptions, resolveLimiterOptions } from './limiter-options.js'
import { answerAtOnce, MemoryStore } from './memory-store.js'
import { isLimit, type Policy } from './policy.js'
import { PolicyChoice } from './policy-choice.js'
import { attachReceipts, receiptsOf } from './receipt.js'
import { refundsOf } from './refunds-of.js'
import { Reporter } from './reporter.js'
import { LeaseOptions } from './reservation/lease-options.js'
import type { ConsumeOptions, Store, Verdict } from './store.js'

const lookForBlock = blockPolicy()

/** Decides requests: key and policies in, one decision out. */
export class Limiter {
  readonly name: string
  /** The budget of one decision, and of each function of the request, in milliseconds. */
  readonly timeoutMs: number
  readonly #options: ResolvedLimiterOptions
  /** What the limiter was given, or made. */
  readonly #ownStore: Store
  /** What it asks: a shared store behind its layers. */
  readonly #store: Store
  readonly #layers: Layers | undefined
  readonly #guard: GuardedStore | undefined
  readonly #watcher: Watcher
  readonly #reporter: Reporter
  readonly #consumeOptions: ConsumeOptions
  /** Those of policies that lease, if there may be any. */
  readonly #leaseOptions: LeaseOptions | undefined
  /** Whether the number of processes has to be counted. */
  readonly #counts: boolean
  readonly #policies: PolicyChoice
  readonly #checks: CheckMaker
  readonly #fallback: Fallback
  #closed = false

  /** @throws SluiceError with the option, its value and what is expected */
  constructor(options: LimiterOptions & Partial<Policy>) {
    const resolved = resolveLimiterOptions(options)
    this.#options = resolved
    this.name = resolved.name
    this.timeoutMs = resolved.timeoutMs
    this.#checks = new CheckMaker(encodeName(this.name))
    const warn = this.warn.bind(this)
    this.#consumeOptions = { timeoutMs: this.timeoutMs, denyStaleMs: resolved.denyStaleMs, warn }
    this.#policies = new PolicyChoice(this.name, resolved, resolved.short && options.name !== undefined)
    this.#ownStore = resolved.store ?? new MemoryStore()
    this.#guard = this.#ownStore.shared ? guardOf(this.#ownStore) : undefined
    this.#reporter = new Reporter(resolved.onEvent, resolved.logger)
    const nodes = (): number | undefined => resolved.nodes ?? this.#layers?.heartbeat.nodes
    this.#fallback = new Fallback(this, this.#ownStore, resolved, this.#consumeOptions, nodes, warn)
    const mayBeLocal = this.#guard !== undefined && this.#fallback.prepare(this.#policies.all)
    const leaseOptions = new LeaseOptions(this.#consumeOptions, resolved)
    const leases = this.#policies.each.some((policies) => leaseOptions.of(policies).lease)
    this.#layers = claimName(this.#ownStore, this.name, options.plans ?? options.policies ?? this)
    this.#store = this.#layers?.store ?? this.#ownStore
    this.#leaseOptions = this.#layers && leases ? leaseOptions : undefined
    this.#counts = resolved.nodes === undefined && (mayBeLocal || this.#leaseOptions !== undefined)
    this.#watcher = { limiter: this.name, reporter: this.#reporter }
    this.#guard?.watch(this.#watcher)
    if (!this.#guard && isClusterWorker()) {
      this.warn(
        'SLUICE_MEMORY_PER_WORKER',
        `limiter ${show(this.name)} counts in the memory of this cluster worker alone, so that all workers together admit up to their number times its limits: give it a shared \`store\``,
      )
    }
  }

  /**
   * Decides a request and charges its cost to every policy, or to none if one denies.
   * @throws SluiceError for a key, cost, plan or limit that cannot be used; never because the request is denied
   */
  consume(request: LimitRequest): Promise<Decision> {
    return this.#decide(request, 'consume')
  }

  /** Decides a request whose plan could not be found: under the plan that stands in, or as `onStoreError` says. */
  async consumeWithoutPlan(request: LimitRequest, error: Error, asStoreError: boolean): Promise<Decision> {
    const { key, plan } = request
    this.#reporter.emit({ type: 'plan-error', limiter: this.name, key, plan, error })
    const cause = error.cause === undefined ? '' : `: ${show(error.cause)}`
    this.#reporter.logOnce('SLUICE_REQUEST_FUNCTION', `${error.message}${cause}; \`onPlanError\` stands in`)
    return this.#decide(request, 'consume', asStoreError ? error : undefined)
  }

  /** Answers as {@link Limiter.consume} would, and charges nothing. */
  peek(request: LimitRequest): Promise<Decision> {
    return this.#decide(request, 'peek')
  }

  /**
   * Gives back what a decision charged: all of it, or some units. The decision is the receipt, good for one refund;
   * a second one, and that of a decision which charged nothing, does nothing. Nothing is given back beyond what the
   * charge still takes: not into a later window, not above full, and from a leaky bucket only the last place.
   * @param units whole, 0 to 10^9; more than was charged counts as all
   * @throws SluiceError when the store failed, `SLUICE_BAD_COST` for units that are not whole
   */
  async refund(decision: Decision, units?: number): Promise<void> {
    this.#assertOpen()
    if (units !== undefined && !isLimit(units)) throw badCost('units', units)
    for (const receipt of receiptsOf(decision)) {
      if (receipt.limiter !== this || receipt.spent) continue
      receipt.spent = true
      const refunds = refundsOf(receipt.checks, receipt.verdicts, (granted) =>
        Math.min(granted, units ?? granted),
      )
      if (refunds.length > 0) await receipt.store.refund(refunds, this.#consumeOptions)
    }
  }

  /**
   * Forgets all that a key has used, under every policy and plan of this limiter; a block stays.
   * @throws SluiceError when the store failed
   */
  async reset(key: string): Promise<void> {
    this.#assertOpen()
    const owner = ownerOf(key)
    const keys = [...new Set(this.#policies.all.map((policy) => this.#checks.keyOf(policy, owner)))]
    if (keys.length === 0) return
    await localStoreOf(this.#ownStore).reset(keys)
    await this.#store.reset(keys, this.#consumeOptions)
  }

  /**
   * Refuses all requests of a key for a while, whatever its policies say; an earlier block is replaced.
   * @param duration up to 100 years, or `'forever'`, which is 100 years
   * @throws SluiceError `SLUICE_BAD_OPTION` on a limiter without `blocks: true`; when the store failed
   */
  async block(key: string, duration: Duration | 'forever'): Promise<void> {
    this.#assertOpen()
    this.#assertBlocks()
    const longestMs = CENTURY_US / 1000
    const lengthMs = duration === 'forever' ? longestMs : parseDuration('duration', duration)
    if (lengthMs > longestMs) throw badOption('duration', duration, "at most 100 years, or 'forever'")
    const checks = this.#checks.make([blockPolicy(lengthMs)], ownerOf(key), 1)
    await this.#store.consume(checks, this.#consumeOptions)
    await this.#layers?.giveBack(checks.map((check) => check.key))
  }

  /**
   * Ends a block; a key that is not blocked stays as it is.
   * @throws SluiceError `SLUICE_BAD_OPTION` on a limiter without `blocks: true`; when the store failed
   */
  async unblock(key: string): Promise<void> {
    this.#assertOpen()
    this.#assertBlocks()
    await this.#store.reset([this.#checks.keyOf(lookForBlock, ownerOf(key))], this.#consumeOptions)
  }

  /** Whether the policies of a request depend on its plan. */
  get hasPlans(): boolean {
    return this.#policies.hasPlans
  }

  /** The longest that an accepted request may have to wait under any policy, in milliseconds. */
  get longestDelayMs(): number {
    const waitsUs = this.#policies.all.map(({ rule }) => rule.longestDelayUs ?? 0)
    return Math.ceil(Math.max(0, ...waitsUs) / 1000)
  }

  /** Whether there is a plan of this name. */
  hasPlan(plan: unknown): plan is string {
    return this.#policies.hasPlan(plan)
  }

  /** A decision that this request is not limited, reported like any other. */
  skip(key: string): Decision {
    return this.report(decideWithoutPolicy({ key }, 'skipped', true, nowMs()))
  }

  /** Reports that a charge could not be given back, for which no decision is left to say so. */
  refundFailed(thrown: unknown): void {
    const error = asError(thrown)
    this.#reporter.emit({ type: 'store-error', limiter: this.name, error })
    this.#reporter.logOnce(
      'SLUICE_STORE_FAILED',
      `limiter ${show(this.name)} could not give back what it charged: ${error.message}`,
    )
  }

  /** Reports a likely mistake: one event and one line for each message, up to a hundred of one code. */
  warn(code: ErrorCode, message: string): void {
    if (this.#reporter.logOnce(code, `${message} (${code})`)) {
      this.#reporter.emit({ type: 'warning', limiter: this.name, code, message })
    }
  }

  /** Gives leases back, frees the limiter's name, and closes the store if the limiter made it. Idempotent. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#guard?.unwatch(this.#watcher)
    await freeName(this.#ownStore, this.name)
    if (this.#options.store === undefined) await this.#ownStore.close()
  }

  /** @param failure why the store has nothing to count: it is only asked for a block */
  async #decide(request: LimitRequest, method: 'consume' | 'peek', failure?: Error): Promise<Decision> {
    this.#assertOpen()
    const { key, cost = 1, plan } = request ?? {}
    const owner = ownerOf(key)
    if (!isLimit(cost)) throw badCost('cost', cost)
    const planned = failure && plan === undefined ? [] : this.#policies.of(plan, request.limit)
    const policies = failure ? [] : planned
    const subject = { key, plan }
    const uncounted = { subject, policies: planned, owner, cost, method }
    const { blocks } = this.#options
    if (policies.length === 0 && !blocks) return this.#uncounted(uncounted, failure)
    const checks = this.#checks.make(blocks ? [...policies, lookForBlock] : policies, owner, cost)
    let verdicts: readonly Verdict[]
    try {
      const atOnce = answerAtOnce(this.#store, method, checks, this.#consumeOptions)
      verdicts =
        atOnce ??
        (await this.#store[method](checks, this.#leaseOptions?.of(policies) ?? this.#consumeOptions))
      if (!atOnce && !this.#guard) checkVerdicts(verdicts, checks.length)
    } catch (thrown) {
      const error = asError(thrown)
      this.#storeFailed(error)
      return this.#uncounted(uncounted, error)
    }
    if (this.#counts) this.#layers?.heartbeat.beat(this.#consumeOptions)
    const blockedUs = blocks ? (verdicts.at(-1) as Verdict).retryUs : 0
    if (policies.length === 0 && blockedUs === 0) return this.#uncounted(uncounted, failure)
    const decision = decideFrom(subject, policies, verdicts, 'store', blockedUs)
    if (method === 'consume' && decision.allowed) {
      attachReceipts(decision, [{ limiter: this, store: this.#store, checks, verdicts, spent: false }])
    }
    return this.report(decision)
  }

  /** The decision where the store counts nothing: nothing is limited, or something failed. */
  async #uncounted(request: Uncounted, failure: Error | undefined): Promise<Decision> {
    return this.report(
      failure
        ? await this.#fallback.decide(request, nowMs(), failure)
        : decideWithoutPolicy(request.subject, 'unlimited', true, nowMs()),
    )
  }

  #assertOpen(): void {
    if (this.#closed) throw new SluiceError('SLUICE_CLOSED', `Limiter ${show(this.name)} was closed`)
  }

  #assertBlocks(): void {
    if (!this.#options.blocks) {
      throw badOption('blocks', false, 'true on a limiter whose keys are to be blocked')
    }
  }

  #storeFailed(error: Error): void {
    this.#reporter.emit({ type: 'store-error', limiter: this.name, error })
    if (this.#guard) this.#guard.countDegraded()
    else
      this.#reporter.logOnce(
        'SLUICE_STORE_FAILED',
        `limiter ${show(this.name)} could not count: ${error.message}`,
      )
  }

  /** Tells `onEvent` of a decision, one of a derived limiter's own too. */
  protected report(decision: Decision): Decision {
    if (this.#reporter.onEvent) this.#reporter.emit({ type: 'decision', limiter: this.name, decision })
    return decision
  }
}

function nowMs(): number {
  return Math.floor(processClockUs() / 1000)
}
