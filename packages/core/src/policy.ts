import type { AlgorithmDefinition, Rule } from './algorithms/algorithm.js'
import type { BucketOptions } from './algorithms/bucket.js'
import type { FixedWindowOptions } from './algorithms/fixed-window/fixed-window.js'
import { type Algorithm, algorithms } from './algorithms/index.js'
import type { LeakyBucketOptions } from './algorithms/leaky-bucket/leaky-bucket.js'
import type { SlidingWindowRingOptions } from './algorithms/sliding-window-ring/sliding-window-ring.js'
import { type Duration, formatDuration, parseDuration } from './duration.js'
import { badOption, refuseUnknownOptions } from './errors.js'
import { checkOnStoreError, type OnStoreError } from './failure/failure-mode.js'
import { encodeName } from './key.js'
import { checkReserve, type Reserve } from './reservation/reserve.js'

/** A named rule: an algorithm and its numbers. */
export interface Policy
  extends BucketOptions,
    FixedWindowOptions,
    LeakyBucketOptions,
    SlidingWindowRingOptions {
  /**
   * Names the policy in headers, decisions and keys: 1 to 64 printable ASCII characters. Default: its numbers,
   * `100-per-1m`.
   */
  name?: string
  /** How units are counted. Default `'sliding-window-counter'`. */
  algorithm?: Algorithm
  /** Units per window: whole, 0 to 10^9. 0 refuses everything. */
  limit: number
  /** Length of the window: 1 ms to 400 days. */
  window: Duration
  /** Decide and report, never refuse. Default false. */
  shadow?: boolean
  /** What to do when the store fails. Default: the limiter's `onStoreError`. */
  onStoreError?: OnStoreError
  /** Whether units are drawn ahead from a shared store: see {@link Reserve}. Default: the limiter's `reserve`. */
  reserve?: Reserve
}

/** What a policy counts by, as plain data that JSON can hold: its options, or the length of a block in milliseconds. */
export type PolicyData = Policy | { readonly block: number }

/** A policy whose options were read, checked and turned into the constants of its algorithm. */
export interface ResolvedPolicy {
  /** The name in headers and decisions. */
  readonly name: string
  readonly algorithm: Algorithm
  readonly limit: number
  readonly windowMs: number
  /** The most units that can pass at once: the limit, or a bucket's burst. */
  readonly burst: number
  readonly shadow: boolean
  /** False for a mere condition, such as a block, which any cost meets or none. */
  readonly countsUnits: boolean
  /** Undefined where the limiter's holds. */
  readonly onStoreError: OnStoreError | undefined
  /** Undefined where the limiter's holds. */
  readonly reserve: Reserve | undefined
  /** The end of the policy's keys: its name or place, and the code and window of its algorithm. */
  readonly keySuffix: string
  /** Decides one request on this policy's state: see `decide`. */
  readonly step: AlgorithmDefinition['step']
  /** Gives back units of an earlier charge; see `AlgorithmDefinition`. */
  readonly refund: AlgorithmDefinition['refund']
  /** How long a leased unit may be spent; undefined where none can be leased. See `AlgorithmDefinition`. */
  readonly leaseUs: AlgorithmDefinition['leaseUs']
  /** How a state of it fits into a few numbers; undefined where it does not. */
  readonly packing: AlgorithmDefinition['packing']
  readonly rule: Rule
  /** What makes it again in another process, as `policyFrom` does. */
  readonly data: PolicyData
  /** What the Redis script is given of this policy. */
  readonly wire: readonly (string | number)[]
  /** The same policy with another limit, for a limit that depends on the request. */
  withLimit(limit: number): ResolvedPolicy
  /** One node's part of the same policy: limit, burst and queue divided by `nodes`, rounded down, at least 1. */
  share(nodes: number): ResolvedPolicy
}

const commonOptions = ['name', 'algorithm', 'limit', 'window', 'shadow', 'onStoreError', 'reserve']
/** Options in units of the limit. */
const sizeOptions = ['burst', 'queue']
const maxLimit = 1e9
const maxWindowMs = 400 * 86_400_000

/** The options of every algorithm, for the check of unknown ones. */
export const policyOptions: readonly string[] = [
  ...new Set([...commonOptions, ...Object.values(algorithms).flatMap((algorithm) => algorithm.options)]),
]

/** Whether `limit` is one that a policy can have. */
export function isLimit(limit: unknown): limit is number {
  return Number.isInteger(limit) && (limit as number) >= 0 && (limit as number) <= maxLimit
}

/**
 * Reads and checks a policy.
 * @param keyName what stands for the policy in keys, when that is not its name
 * @throws SluiceError with the option, its value and what is expected
 */
export function resolvePolicy(policy: Policy, keyName?: string): ResolvedPolicy {
  if (typeof policy !== 'object' || policy === null) {
    throw badOption('policy', policy, 'an object such as { limit: 100, window: "1m" }')
  }
  const { algorithm = 'sliding-window-counter', limit, shadow = false } = policy
  if (typeof algorithm !== 'string' || !Object.hasOwn(algorithms, algorithm)) {
    throw badOption('algorithm', algorithm, `one of ${Object.keys(algorithms).join(', ')}`)
  }
  const definition: AlgorithmDefinition = algorithms[algorithm]
  refuseUnknownOptions(`a ${algorithm} policy`, policy, [...commonOptions, ...definition.options])
  if (!isLimit(limit)) throw badOption('limit', limit, 'a whole number from 0 to 1,000,000,000')
  const windowMs = parseDuration('window', policy.window)
  if (windowMs > maxWindowMs) throw badOption('window', policy.window, 'at most 400 days')
  if (typeof shadow !== 'boolean') throw badOption('shadow', shadow, 'true or false')
  if (policy.onStoreError !== undefined) checkOnStoreError(policy.onStoreError)
  if (policy.reserve !== undefined) checkReserve(policy.reserve)
  const name = checkName('name', policy.name ?? `${limit}-per-${formatDuration(windowMs)}`)
  const keySuffix = `${encodeName(keyName ?? name)}:${definition.code}${windowMs}`
  const { onStoreError, reserve } = policy
  const options = { ...policy }
  const common = { algorithm, name, windowMs, shadow, onStoreError, reserve, keySuffix }
  return build({ ...common, definition, options }, limit)
}

interface Parts {
  readonly definition: AlgorithmDefinition
  readonly algorithm: Algorithm
  readonly name: string
  readonly windowMs: number
  readonly shadow: boolean
  readonly onStoreError: OnStoreError | undefined
  readonly reserve: Reserve | undefined
  readonly keySuffix: string
  readonly options: Readonly<Record<string, unknown>>
}

function build(parts: Parts, limit: number): ResolvedPolicy {
  const { definition, algorithm, name, windowMs, shadow, onStoreError, reserve, keySuffix, options } = parts
  const windowUs = windowMs * 1000
  // A limit of 0 never reaches the step; its other options are checked all the same.
  const rule = definition.resolve({ limit: Math.max(limit, 1), windowUs, options })
  const burst = limit === 0 ? 0 : rule.burst
  return Object.freeze({
    name,
    algorithm,
    limit,
    windowMs,
    burst,
    shadow,
    countsUnits: true,
    onStoreError,
    reserve,
    keySuffix: `${keySuffix}${rule.keyDetail ?? ''}`,
    step: definition.step,
    refund: definition.refund,
    leaseUs: definition.leaseUs,
    packing: definition.packing,
    rule,
    data: Object.freeze({
      ...Object.fromEntries(definition.options.map((option) => [option, options[option]])),
      algorithm,
      limit,
      window: windowMs,
      shadow,
    }),
    wire: Object.freeze([definition.code, shadow ? 1 : 0, limit, windowUs, burst, ...rule.wire]),
    withLimit: (other: number) => build(parts, other),
    share: (nodes: number) => {
      const shared = (units: number): number => (units === 0 ? 0 : Math.max(1, Math.floor(units / nodes)))
      const sizes = sizeOptions
        .filter((option) => options[option] !== undefined)
        .map((option) => [option, shared(options[option] as number)])
      return build({ ...parts, options: { ...options, ...Object.fromEntries(sizes) } }, shared(limit))
    },
  })
}

/** Checks a name that goes into headers and keys. */
export function checkName(option: string, name: unknown): string {
  if (typeof name !== 'string' || !/^[\x20-\x7e]{1,64}$/.test(name)) {
    throw badOption(option, name, '1 to 64 printable ASCII characters')
  }
  return name
}
