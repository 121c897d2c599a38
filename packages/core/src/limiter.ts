import { type ClockUs, processClockUs } from './clock.js'
import { type Decision, decideFrom, decideWithoutPolicy, type Subject } from './decision.js'
import { badOption, type ErrorCode, refuseUnknownOptions, SluiceError, show } from './errors.js'
import type { Logger, SluiceEvent } from './events.js'
import { encodeKey, encodeName } from './key.js'
import { MemoryStore } from './memory-store.js'
import { definePlans, type Plan, type Plans, policiesOf, resolvePolicies } from './plans.js'
import { checkName, isLimit, type Policy, policyOptions, type ResolvedPolicy } from './policy.js'
import type { Check, ConsumeOptions, Store, Verdict } from './store.js'
import { within } from './within.js'

/** What to do with a request when the store does not answer: serve it, or refuse it with 503. */
export type OnStoreError = 'allow' | 'deny'

/** Options of a {@link Limiter}, beside those of its policy in the short form. */
export interface LimiterOptions {
  /**
   * Names the limiter in keys, headers of several limiters, and events: 1 to 64 printable ASCII characters. In the
   * short form it names the one policy too. Default `'default'`.
   */
  name?: string
  /** Where the counts live. Default: a {@link MemoryStore} of its own. */
  store?: Store
  /** Several policies that all apply: a request passes if each of them admits it, and is charged to all or none. */
  policies?: readonly Policy[]
  /** Policies by tier, made by {@link definePlans} or as it takes them. */
  plans?: Plans | Record<string, Plan>
  /** The budget of one decision in milliseconds, 1 to 60,000. Default 100. */
  timeoutMs?: number
  /** What becomes of a request when the store fails or does not answer in time. Default `'allow'`. */
  onStoreError?: OnStoreError
  /** Hears every decision, store error and warning. */
  onEvent?: (event: SluiceEvent) => void
  /** Where warnings are written. Default `console`. */
  logger?: Logger
}

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

const limiterOptions = [
  'name',
  'store',
  'policies',
  'plans',
  'timeoutMs',
  'onStoreError',
  'onEvent',
  'logger',
]

/** Every option of a limiter, those of its policy in the short form included. */
export const allLimiterOptions: readonly string[] = [...new Set([...limiterOptions, ...policyOptions])]

interface NameHolder {
  /** The policies that the name stands for. */
  readonly identity: unknown
  readonly limiters: number
}

/** The names taken on each store. */
const namesOf = new WeakMap<Store, Map<string, NameHolder>>()

const maxCachedLimits = 1000

/** Decides requests: key and policies in, one decision out. */
export class Limiter {
  readonly name: string
  /** The budget of one decision, and of each function of the request, in milliseconds. */
  readonly timeoutMs: number
  readonly #store: Store
  readonly #ownsStore: boolean
  readonly #consumeOptions: ConsumeOptions
  readonly #policies: readonly ResolvedPolicy[]
  readonly #plans: ReadonlyMap<string, readonly ResolvedPolicy[]> | undefined
  readonly #onStoreError: OnStoreError
  readonly #onEvent: LimiterOptions['onEvent']
  readonly #logger: Logger
  readonly #nowUs: ClockUs = processClockUs
  readonly #warned = new Set<string>()
  /** Set in the short form of a named limiter, whose limit may depend on the request. */
  readonly #byLimit: Map<number, readonly ResolvedPolicy[]> | undefined
  #closed = false

  /** @throws SluiceError with the option, its value and what is expected */
  constructor(options: LimiterOptions & Partial<Policy>) {
    if (typeof options !== 'object' || options === null) {
      throw badOption('options', options, 'an object such as { limit: 100, window: "1m" }')
    }
    refuseUnknownOptions('a limiter', options, allLimiterOptions)
    const {
      name = 'default',
      store,
      timeoutMs = 100,
      onStoreError = 'allow',
      onEvent,
      logger = console,
    } = options
    this.name = checkName('name', name)
    const source = readPolicies(options)
    this.#policies = source.policies
    this.#plans = source.plans
    this.#byLimit = source.short && options.name !== undefined ? new Map() : undefined
    if (!Number.isInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > 60_000) {
      throw badOption('timeoutMs', timeoutMs, 'whole milliseconds from 1 to 60,000')
    }
    if (onStoreError !== 'allow' && onStoreError !== 'deny') {
      throw badOption('onStoreError', onStoreError, "'allow' or 'deny'")
    }
    if (onEvent !== undefined && typeof onEvent !== 'function')
      throw badOption('onEvent', onEvent, 'a function')
    if (typeof logger?.warn !== 'function')
      throw badOption('logger', logger, 'an object with a method `warn`')
    if (store !== undefined && typeof store?.consume !== 'function') {
      throw badOption('store', store, 'a Store such as `new MemoryStore()` or `new RedisStore(client)`')
    }
    this.timeoutMs = timeoutMs
    this.#consumeOptions = { timeoutMs, warn: (code, message) => this.warn(code, message) }
    this.#onStoreError = onStoreError
    this.#onEvent = onEvent
    this.#logger = logger
    this.#ownsStore = store === undefined
    this.#store = store ?? new MemoryStore()
    claimName(this.#store, this.name, options.plans ?? options.policies ?? this)
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

  /** Whether the policies of a request depend on its plan. */
  get hasPlans(): boolean {
    return this.#plans !== undefined
  }

  /** Whether there is a plan of this name. */
  hasPlan(plan: unknown): plan is string {
    return typeof plan === 'string' && this.#plans !== undefined && this.#plans.has(plan)
  }

  /** A decision that this request is not limited, reported like any other. */
  skip(key: string): Decision {
    return this.#report(decideWithoutPolicy({ key }, 'skipped', true, this.#nowMs()))
  }

  /** Reports a likely mistake: one event and one line for each code and message. */
  warn(code: ErrorCode, message: string): void {
    if (this.#warned.has(message) || this.#warned.size >= 1000) return
    this.#warned.add(message)
    this.#emit({ type: 'warning', limiter: this.name, code, message })
    this.#logger.warn(`sluice: ${message} (${code})`)
  }

  /** Frees the limiter's name and closes the store if the limiter made it. Idempotent. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    freeName(this.#store, this.name)
    if (this.#ownsStore) await this.#store.close()
  }

  async #decide(request: LimitRequest, method: 'consume' | 'peek'): Promise<Decision> {
    if (this.#closed) throw new SluiceError('SLUICE_CLOSED', `Limiter ${show(this.name)} was closed`)
    const { key, cost = 1, plan } = request
    if (typeof key !== 'string') {
      throw new SluiceError('SLUICE_BAD_KEY', `The key is ${show(key)}. Expected a string`)
    }
    if (!isLimit(cost)) {
      throw new SluiceError(
        'SLUICE_BAD_COST',
        `The cost is ${show(cost)}. Expected a whole number from 0 to 1,000,000,000`,
      )
    }
    const policies = this.#policiesFor(request)
    const subject: Subject = plan === undefined ? { key } : { key, plan }
    if (policies.length === 0) {
      return this.#report(decideWithoutPolicy(subject, 'unlimited', true, this.#nowMs()))
    }
    const prefix = `1:{${encodeKey(key)}}:${encodeName(this.name)}:`
    const checks = policies.map(
      (policy): Check => ({ key: prefix + policy.keySuffix, policy, least: cost, most: cost }),
    )
    let verdicts: readonly Verdict[]
    try {
      verdicts = await this.#ask(checks, method)
    } catch (error) {
      this.#emit({ type: 'store-error', limiter: this.name, error: error as Error })
      return this.#report(
        decideWithoutPolicy(subject, 'store-error', this.#onStoreError === 'allow', this.#nowMs()),
      )
    }
    return this.#report(decideFrom(subject, policies, verdicts))
  }

  #ask(checks: readonly Check[], method: 'consume' | 'peek'): Promise<readonly Verdict[]> {
    const answer = this.#store[method](checks, this.#consumeOptions)
    if (!this.#store.shared) return answer
    return within(answer, this.timeoutMs, () => {
      return new SluiceError('SLUICE_STORE_TIMEOUT', `The store did not answer within ${this.timeoutMs} ms`)
    })
  }

  #policiesFor({ plan, limit }: LimitRequest): readonly ResolvedPolicy[] {
    if (this.#plans) {
      const policies = typeof plan === 'string' ? this.#plans.get(plan) : undefined
      if (policies) return this.#withLimit(policies, limit)
      throw new SluiceError(
        'SLUICE_UNKNOWN_PLAN',
        `Limiter ${show(this.name)} has no plan ${show(plan)}. Expected one of ${[...this.#plans.keys()].join(', ')}`,
      )
    }
    if (plan !== undefined) {
      throw new SluiceError(
        'SLUICE_UNKNOWN_PLAN',
        `Limiter ${show(this.name)} has no plans, so ${show(plan)} is none of them`,
      )
    }
    return this.#withLimit(this.#policies, limit)
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
    try {
      this.#onEvent?.(event)
    } catch (error) {
      // A listener's mistake must not refuse a request.
      this.#logger.warn(`sluice: onEvent threw ${show(error)}`)
    }
  }

  #nowMs(): number {
    return Math.floor(this.#nowUs() / 1000)
  }
}

interface PolicySource {
  readonly policies: readonly ResolvedPolicy[]
  readonly plans?: ReadonlyMap<string, readonly ResolvedPolicy[]>
  readonly short?: boolean
}

/** Reads the one of the three forms that the options use: limit and window, policies, or plans. */
function readPolicies(options: LimiterOptions & Partial<Policy>): PolicySource {
  const given = (option: string) => options[option as keyof Policy] !== undefined
  const forms = [
    policyOptions.find((option) => option !== 'name' && given(option)),
    ...['policies', 'plans'].filter(given),
  ].filter(Boolean)
  if (forms.length !== 1) {
    throw badOption(
      forms.length === 0 ? 'limit' : forms.join('`, `'),
      forms.length === 0 ? undefined : 'given together',
      'one of: `limit` and `window`, `policies`, or `plans`',
    )
  }
  if (options.plans !== undefined) {
    const plans =
      policiesOf(options.plans) ?? (policiesOf(definePlans(options.plans)) as PolicySource['plans'])
    return { policies: [], plans: plans as ReadonlyMap<string, readonly ResolvedPolicy[]> }
  }
  if (options.policies !== undefined) {
    if (!Array.isArray(options.policies) || options.policies.length === 0) {
      throw badOption('policies', options.policies, 'an array of at least one policy')
    }
    return { policies: resolvePolicies(options.policies, false) }
  }
  const policy = Object.fromEntries(
    policyOptions.filter(given).map((option) => [option, options[option as keyof Policy]]),
  )
  return { policies: resolvePolicies([policy as unknown as Policy], false), short: true }
}

/** Two limiters that share a store and a name would count each other's requests; only the same policies may. */
function claimName(store: Store, name: string, identity: unknown): void {
  const names = namesOf.get(store) ?? new Map<string, NameHolder>()
  namesOf.set(store, names)
  const holder = names.get(name)
  if (holder && holder.identity !== identity) {
    throw new SluiceError(
      'SLUICE_DUPLICATE_NAME',
      `Option \`name\` is ${show(name)}, which another limiter on this store has. Expected a name of its own, or the same \`policies\` array or \`definePlans\` value to share its counts.`,
    )
  }
  names.set(name, { identity, limiters: (holder?.limiters ?? 0) + 1 })
}

function freeName(store: Store, name: string): void {
  const names = namesOf.get(store)
  const holder = names?.get(name)
  if (!names || !holder) return
  if (holder.limiters > 1) names.set(name, { ...holder, limiters: holder.limiters - 1 })
  else names.delete(name)
}
