import { blockPolicy } from './algorithms/block/block.js'
import { CENTURY_US } from './algorithms/bucket.js'
import { processClockUs } from './clock.js'
import { isClusterWorker } from './cluster-worker.js'
import { type Decision, decideFrom, decideWithoutPolicy } from './decision.js'
import { type Duration, parseDuration } from './duration.js'
import { badOption, type ErrorCode, SluiceError, show } from './errors.js'
import type { SluiceEvent } from './events.js'
import { encodeKey, encodeName } from './key.js'
import { claimName, freeName } from './limiter-names.js'
import { type LimiterOptions, type ResolvedLimiterOptions, resolveLimiterOptions } from './limiter-options.js'
import { MemoryStore } from './memory-store.js'
import { isLimit, type Policy, type ResolvedPolicy } from './policy.js'
import { attachReceipts, receiptsOf } from './receipt.js'
import type { Check, ConsumeOptions, Refund, Store, Verdict } from './store.js'
import { within } from './within.js'

/** A request as {@link Limiter.consume} takes it. */
export interface LimitRequest {
  /** Who is counted. */
  key: string
  /** Units to charge: whole, 0 to 10^9; 0 charges nothing. Default 1. */
  cost?: number
  /** The plan whose policies apply; for limiters with `plans`, and required there. */
  plan?: string
  /** Another limit for this request; for limiters of the short form that have a name. */
  limit?: number
}

const maxCachedLimits = 1000

/** Messages may hold what clients send, of which there is no end. */
const maxLinesPerCode = 100

const lookForBlock = blockPolicy()

/** Decides requests: key and policies in, one decision out. */
export class Limiter {
  readonly name: string
  /** The budget of one decision, and of each function of the request, in milliseconds. */
  readonly timeoutMs: number
  readonly #encodedName: string
  readonly #store: Store
  readonly #options: ResolvedLimiterOptions
  readonly #consumeOptions: ConsumeOptions
  readonly #logged = new Map<ErrorCode, Set<string>>()
  /** In the short form of a named limiter, whose limit may depend on the request: its policy by limit. */
  readonly #byLimit: Map<number, readonly ResolvedPolicy[]> | undefined
  #closed = false

  /** @throws SluiceError with the option, its value and what is expected */
  constructor(options: LimiterOptions & Partial<Policy>) {
    const resolved = resolveLimiterOptions(options)
    this.#options = resolved
    this.name = resolved.name
    this.timeoutMs = resolved.timeoutMs
    this.#encodedName = encodeName(this.name)
    this.#consumeOptions = { timeoutMs: this.timeoutMs, warn: (code, message) => this.warn(code, message) }
    this.#byLimit = resolved.short && options.name !== undefined ? new Map() : undefined
    this.#store = resolved.store ?? new MemoryStore()
    claimName(this.#store, this.name, options.plans ?? options.policies ?? this)
    if (!this.#store.shared && isClusterWorker()) {
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
      const refunds: Refund[] = []
      for (const [i, { key, policy }] of receipt.checks.entries()) {
        const { granted, atUs, resetUs } = receipt.verdicts[i] as Verdict
        const given = Math.min(granted, units ?? granted)
        if (given > 0) refunds.push({ key, policy, units: given, atUs, resetUs })
      }
      if (refunds.length > 0) await this.#inTime(this.#store.refund(refunds, this.#consumeOptions))
    }
  }

  /**
   * Forgets all that a key has used, under every policy and plan of this limiter; a block stays.
   * @throws SluiceError when the store failed
   */
  async reset(key: string): Promise<void> {
    this.#assertOpen()
    const prefix = this.#prefixOf(key)
    const keys = [...new Set(this.#allPolicies().map((policy) => prefix + policy.keySuffix))]
    if (keys.length > 0) await this.#inTime(this.#store.reset(keys, this.#consumeOptions))
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
    const policy = blockPolicy(lengthMs)
    const check = { key: this.#prefixOf(key) + policy.keySuffix, policy, least: 1, most: 1 }
    await this.#inTime(this.#store.consume([check], this.#consumeOptions))
  }

  /**
   * Ends a block; a key that is not blocked stays as it is.
   * @throws SluiceError `SLUICE_BAD_OPTION` on a limiter without `blocks: true`; when the store failed
   */
  async unblock(key: string): Promise<void> {
    this.#assertOpen()
    this.#assertBlocks()
    await this.#inTime(
      this.#store.reset([this.#prefixOf(key) + lookForBlock.keySuffix], this.#consumeOptions),
    )
  }

  /** Whether the policies of a request depend on its plan. */
  get hasPlans(): boolean {
    return this.#options.plans !== undefined
  }

  /** The longest that an accepted request may have to wait under any policy, in milliseconds. */
  get longestDelayMs(): number {
    const waitsUs = this.#allPolicies().map(({ rule }) => rule.longestDelayUs ?? 0)
    return Math.ceil(Math.max(0, ...waitsUs) / 1000)
  }

  /** Whether there is a plan of this name. */
  hasPlan(plan: unknown): plan is string {
    return typeof plan === 'string' && this.#options.plans !== undefined && this.#options.plans.has(plan)
  }

  /** A decision that this request is not limited, reported like any other. */
  skip(key: string): Decision {
    return this.#report(decideWithoutPolicy({ key }, 'skipped', true, nowMs()))
  }

  /** Reports that the store failed in something for which no decision is left to say so. */
  storeFailed(error: Error): void {
    this.#emit({ type: 'store-error', limiter: this.name, error })
    this.#logOnce('SLUICE_STORE_FAILED', `limiter ${show(this.name)} could not count: ${error.message}`)
  }

  /** Reports a likely mistake: one event and one line for each message, up to a hundred of one code. */
  warn(code: ErrorCode, message: string): void {
    if (this.#logOnce(code, `${message} (${code})`)) {
      this.#emit({ type: 'warning', limiter: this.name, code, message })
    }
  }

  /** Frees the limiter's name and closes the store if the limiter made it. Idempotent. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    freeName(this.#store, this.name)
    if (this.#options.store === undefined) await this.#store.close()
  }

  async #decide(request: LimitRequest, method: 'consume' | 'peek'): Promise<Decision> {
    this.#assertOpen()
    const { key, cost = 1, plan } = request ?? {}
    const prefix = this.#prefixOf(key)
    if (!isLimit(cost)) throw badCost('cost', cost)
    const policies = this.#policiesFor(request)
    const subject = { key, plan }
    const { blocks, onStoreError } = this.#options
    if (policies.length === 0 && !blocks) {
      return this.#report(decideWithoutPolicy(subject, 'unlimited', true, nowMs()))
    }
    const checks = (blocks ? [...policies, lookForBlock] : policies).map(
      (policy): Check => ({ key: prefix + policy.keySuffix, policy, least: cost, most: cost }),
    )
    let verdicts: readonly Verdict[]
    try {
      verdicts = await this.#inTime(this.#store[method](checks, this.#consumeOptions))
      if (verdicts?.length !== checks.length) {
        throw new SluiceError('SLUICE_STORE_FAILED', 'The store did not give one verdict for each check')
      }
    } catch (error) {
      this.storeFailed(error as Error)
      return this.#report(decideWithoutPolicy(subject, 'store-error', onStoreError === 'allow', nowMs()))
    }
    const blockedUs = blocks ? (verdicts.at(-1) as Verdict).retryUs : 0
    if (policies.length === 0 && blockedUs === 0) {
      return this.#report(decideWithoutPolicy(subject, 'unlimited', true, nowMs()))
    }
    const decision = decideFrom(subject, policies, verdicts, blockedUs)
    if (method === 'consume' && decision.allowed) {
      attachReceipts(decision, [{ limiter: this, checks, verdicts, spent: false }])
    }
    return this.#report(decision)
  }

  /** A store in this process answers at once, or not at all; a shared one has the budget. */
  #inTime<T>(answer: Promise<T>): Promise<T> {
    if (!this.#store.shared) return answer
    return within(answer, this.timeoutMs, () => {
      return new SluiceError('SLUICE_STORE_TIMEOUT', `The store did not answer within ${this.timeoutMs} ms`)
    })
  }

  #allPolicies(): readonly ResolvedPolicy[] {
    const { plans, policies } = this.#options
    return plans ? [...plans.values()].flat() : policies
  }

  #prefixOf(key: unknown): string {
    if (typeof key !== 'string') {
      throw new SluiceError(
        'SLUICE_BAD_KEY',
        `The key is ${show(key)}. Expected a string, as in { key: 'user:42' }`,
      )
    }
    return `1:{${encodeKey(key)}}:${this.#encodedName}:`
  }

  #assertOpen(): void {
    if (this.#closed) throw new SluiceError('SLUICE_CLOSED', `Limiter ${show(this.name)} was closed`)
  }

  #assertBlocks(): void {
    if (!this.#options.blocks) {
      throw badOption('blocks', false, 'true on a limiter whose keys are to be blocked')
    }
  }

  #policiesFor({ plan, limit }: LimitRequest): readonly ResolvedPolicy[] {
    if (this.#options.plans) {
      const policies = typeof plan === 'string' ? this.#options.plans.get(plan) : undefined
      if (policies) return this.#withLimit(policies, limit)
      throw new SluiceError(
        'SLUICE_UNKNOWN_PLAN',
        `Limiter ${show(this.name)} has no plan ${show(plan)}. Expected one of ${[...this.#options.plans.keys()].join(', ')}`,
      )
    }
    if (plan !== undefined) {
      throw new SluiceError(
        'SLUICE_UNKNOWN_PLAN',
        `Limiter ${show(this.name)} has no plans, so ${show(plan)} is none of them`,
      )
    }
    return this.#withLimit(this.#options.policies, limit)
  }

  #withLimit(policies: readonly ResolvedPolicy[], limit: number | undefined): readonly ResolvedPolicy[] {
    if (limit === undefined) return policies
    if (!this.#byLimit) {
      throw new SluiceError(
        'SLUICE_BAD_LIMIT',
        `A limit of the request needs a limiter with a \`name\` and one policy in the short form { name, limit, window }`,
      )
    }
    if (!isLimit(limit)) {
      throw new SluiceError(
        'SLUICE_BAD_LIMIT',
        `The limit is ${show(limit)}. Expected a whole number from 0 to 1,000,000,000`,
      )
    }
    let changed = this.#byLimit.get(limit)
    if (!changed) {
      changed = policies.map((policy) => policy.withLimit(limit))
      if (this.#byLimit.size >= maxCachedLimits) this.#byLimit.clear()
      this.#byLimit.set(limit, changed)
    }
    return changed
  }

  #report(decision: Decision): Decision {
    this.#emit({ type: 'decision', limiter: this.name, decision })
    return decision
  }

  #emit(event: SluiceEvent): void {
    const { onEvent } = this.#options
    if (!onEvent) return
    // A listener's mistake must neither refuse a request nor end the process.
    const failed = (error: unknown): void => this.#log(`sluice: onEvent failed with ${show(error)}`)
    try {
      const settled: unknown = onEvent(event)
      if (settled instanceof Promise) settled.catch(failed)
    } catch (error) {
      failed(error)
    }
  }

  /** Writes a line unless it was written before; false if it was, or if its code has had its share. */
  #logOnce(code: ErrorCode, message: string): boolean {
    const logged = this.#logged.get(code) ?? new Set()
    if (logged.has(message) || logged.size >= maxLinesPerCode) return false
    this.#logged.set(code, logged.add(message))
    this.#log(`sluice: ${message}`)
    return true
  }

  #log(line: string): void {
    // There is nowhere left to tell of a logger that fails.
    try {
      const settled: unknown = this.#options.logger.warn(line)
      if (settled instanceof Promise) settled.catch(() => {})
    } catch {}
  }
}

function nowMs(): number {
  return Math.floor(processClockUs() / 1000)
}

function badCost(what: 'cost' | 'units', value: unknown): SluiceError {
  return new SluiceError(
    'SLUICE_BAD_COST',
    `The ${what} is ${show(value)}. Expected a whole number from 0 to 1,000,000,000`,
  )
}
