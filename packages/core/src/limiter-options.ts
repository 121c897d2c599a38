import { checkLogger } from './check-logger.js'
import { checkWhole } from './check-whole.js'
import { badOption, refuseUnknownOptions } from './errors.js'
import type { Logger, SluiceEvent } from './events.js'
import { checkOnStoreError, type OnStoreError } from './failure/failure-mode.js'
import { definePlans, type Plan, type Plans, policiesOf, resolvePolicies } from './plans.js'
import { checkName, type Policy, policyOptions, type ResolvedPolicy } from './policy.js'
import type { PolicySource } from './policy-choice.js'
import { leaseTermsOf } from './reservation/lease-terms.js'
import { checkReserve, type Reserve } from './reservation/reserve.js'
import type { Store } from './store.js'

/** Options of a {@link Limiter}, beside those of its policy in the short form. */
export interface LimiterOptions {
  /**
   * Names the limiter in keys, headers of several limiters, and events: 1 to 64 printable ASCII characters. In the
   * short form it names the one policy too. Default `'default'`.
   */
  name?: string
  /** Where the counts live. Default: a {@link MemoryStore} of its own. */
  store?: Store | undefined
  /** Several policies that all apply: a request passes if each of them admits it, and is charged to all or none. */
  policies?: readonly Policy[]
  /** Policies by tier, made by {@link definePlans} or as it takes them. */
  plans?: Plans | Record<string, Plan>
  /**
   * Whether keys can be blocked. Each decision then looks for a block too, in the same call to the store. Default
   * false.
   */
  blocks?: boolean
  /** The budget of one decision in milliseconds, 1 to 60,000. Default 100. */
  timeoutMs?: number
  /**
   * What becomes of a request when the store fails or does not answer in time: see {@link OnStoreError}. It holds for
   * every policy without one of its own, and for blocks. Default `'allow'`.
   */
  onStoreError?: OnStoreError
  /**
   * How many processes share the store, 1 to 100,000: with `onStoreError: 'local'` each serves this part of every
   * limit while the store is away, and a lease is this process's part of what is left. Default: those that decided by
   * this limiter in the last ten seconds, as counted in the store where it matters; 1 until the store has told.
   */
  nodes?: number
  /**
   * How long at most a denial is repeated without asking a shared store again: whole milliseconds, 0 to 60,000; 0 asks
   * always. What other processes give back or reset is seen as much later. Default 1000.
   */
  denyStaleMs?: number
  /** Whether units are drawn ahead from a shared store; for all policies without one of their own. Default false. */
  reserve?: Reserve
  /** Hears every decision, store error and warning, and when the store goes down and comes up. */
  onEvent?: (event: SluiceEvent) => void
  /** Where warnings are written, and one line when the store goes down or comes up. Default `console`. */
  logger?: Logger
}

const limiterOptions = [
  'name',
  'store',
  'policies',
  'plans',
  'blocks',
  'timeoutMs',
  'onStoreError',
  'nodes',
  'denyStaleMs',
  'reserve',
  'onEvent',
  'logger',
]

/** Every option of a limiter, those of its policy in the short form included. */
export const allLimiterOptions: readonly string[] = [...new Set([...limiterOptions, ...policyOptions])]

const storeMethods = ['consume', 'peek', 'refund', 'reset', 'close'] as const

/** The options of a limiter, checked, with their defaults. */
export interface ResolvedLimiterOptions extends PolicySource {
  /** Whether the policy was given in the short form, as limit and window. */
  readonly short: boolean
  readonly name: string
  /** Undefined where the limiter is to make one of its own. */
  readonly store: Store | undefined
  readonly blocks: boolean
  readonly timeoutMs: number
  readonly onStoreError: OnStoreError
  /** Undefined where it is not known. */
  readonly nodes: number | undefined
  readonly denyStaleMs: number
  /** Undefined where policies lease only if they say so. */
  readonly reserve: Reserve | undefined
  readonly onEvent: LimiterOptions['onEvent']
  readonly logger: Logger
}

/**
 * Reads and checks the options of a limiter.
 * @throws SluiceError with the option, its value and what is expected
 */
export function resolveLimiterOptions(options: LimiterOptions & Partial<Policy>): ResolvedLimiterOptions {
  if (typeof options !== 'object' || options === null) {
    throw badOption('options', options, 'an object such as { limit: 100, window: "1m" }')
  }
  refuseUnknownOptions('a limiter', options, allLimiterOptions)
  const {
    store,
    blocks = false,
    timeoutMs = 100,
    onStoreError = 'allow',
    nodes,
    denyStaleMs = 1000,
    reserve,
    onEvent,
    logger = console,
  } = options
  const name = checkName('name', options.name === undefined ? 'default' : options.name)
  const source = readPolicies(options)
  if (typeof blocks !== 'boolean') throw badOption('blocks', blocks, 'true or false')
  checkWhole('timeoutMs', timeoutMs, 1, 60_000, 'whole milliseconds')
  checkOnStoreError(onStoreError)
  if (nodes !== undefined) checkWhole('nodes', nodes, 1, 100_000, 'a whole number of processes')
  checkWhole('denyStaleMs', denyStaleMs, 0, 60_000, 'whole milliseconds')
  if (reserve !== undefined) checkReserve(reserve)
  for (const policies of source.plans?.values() ?? [source.policies]) leaseTermsOf(policies, reserve)
  if (onEvent !== undefined && typeof onEvent !== 'function')
    throw badOption('onEvent', onEvent, 'a function')
  checkLogger(logger)
  if (store !== undefined && !isStore(store)) {
    throw badOption('store', store, 'a Store such as `new MemoryStore()` or `new RedisStore(client)`')
  }
  return {
    ...source,
    name,
    store,
    blocks,
    timeoutMs,
    onStoreError,
    nodes,
    denyStaleMs,
    reserve,
    onEvent,
    logger,
  }
}

/** Also one that does not say whether it is shared is none: a shared one needs a deadline. */
function isStore(store: Store): boolean {
  return (
    typeof store?.shared === 'boolean' && storeMethods.every((method) => typeof store[method] === 'function')
  )
}

/** Options of a policy that in the short form are the limiter's. */
const limitersOwn: readonly string[] = ['onStoreError', 'reserve']

/** Options of a policy that say nothing of the form. */
const sharedOptions: readonly string[] = ['name', ...limitersOwn]

/** Reads the one of the three forms that the options use: limit and window, policies, or plans. */
function readPolicies(options: LimiterOptions & Partial<Policy>): PolicySource & { short: boolean } {
  const given = (option: string) => options[option as keyof Policy] !== undefined
  const forms = [
    policyOptions.find((option) => !sharedOptions.includes(option) && given(option)),
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
    return { policies: [], plans: plans as ReadonlyMap<string, readonly ResolvedPolicy[]>, short: false }
  }
  if (options.policies !== undefined) {
    if (!Array.isArray(options.policies) || options.policies.length === 0) {
      throw badOption('policies', options.policies, 'an array of at least one policy')
    }
    return { policies: resolvePolicies(options.policies, false), short: false }
  }
  const policy = Object.fromEntries(
    policyOptions
      .filter((option) => !limitersOwn.includes(option) && given(option))
      .map((option) => [option, options[option as keyof Policy]]),
  )
  return { policies: resolvePolicies([policy as unknown as Policy], false), short: true }
}
