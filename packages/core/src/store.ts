import type { Charge } from './algorithms/algorithm.js'
import type { ErrorCode } from './errors.js'
import type { ResolvedPolicy } from './policy.js'
import type { LeaseTerms } from './reservation/lease-terms.js'

/** One policy to decide for one key. All checks of a call ask for the same units. */
export interface Check {
  /** The store key, unique to the key, limiter and policy; see `docs/guide/keys.md`. */
  readonly key: string
  /** The part of `key` between its braces, where the rest of it is known too: `key` is `1:{` + owner + tail. */
  readonly owner?: string
  /** What the keys of one limiter and policy have in common: the brace after the owner, and all that follows. */
  readonly tail?: string
  readonly policy: ResolvedPolicy
  /** Fewer units than this are refused. A plain decision asks `least` = `most` = cost. */
  readonly least: number
  /** Units to take if there are as many; a lease takes what there is from `least` up to this. */
  readonly most: number
}

/** The checks of one request: the same cost under each of its policies. */
export function checksOf(
  policies: readonly ResolvedPolicy[],
  prefix: string,
  cost: number,
): readonly Check[] {
  return policies.map((policy) => ({ key: prefix + policy.keySuffix, policy, least: cost, most: cost }))
}

/** A charge of one policy for one key, some units of which are to be given back. */
export interface Refund extends Charge {
  readonly key: string
  readonly policy: ResolvedPolicy
}

/** What a store may spend on a call. */
export interface ConsumeOptions {
  /** The budget in milliseconds: a call that reaches the store later must not charge. */
  readonly timeoutMs: number
  /** How long at most a denial may be repeated without asking the store again, in milliseconds. Default: not at all. */
  readonly denyStaleMs?: number
  /** On which terms units may be drawn ahead and spent in memory. Default: each decision is the store's own. */
  readonly lease?: LeaseTerms | undefined
  /** Hears of a likely mistake that the call revealed; the limiter reports it once. */
  warn?(code: ErrorCode, message: string): void
}

/** A store's answer for one check. All times are whole microseconds, counted from `atUs`. */
export interface Verdict {
  /**
   * True where the store could not tell, which may be only beside a denial: that stands whatever the others are. The
   * rest of the verdict then says nothing.
   */
  readonly failed?: true
  /** Who gave it in place of the store; one for all verdicts of a call. */
  readonly source?: 'lease' | 'deny-cache'
  /** Whether this policy would admit, whatever the other checks of the call say. */
  readonly allowed: boolean
  /** Units charged (by peek: that would be charged); 0 when any check refused. */
  readonly granted: number
  /** The largest cost that would pass now, after this call. */
  readonly remaining: number
  /** Until the same cost could pass if nobody else came; 0 when allowed, -1 when it never can. */
  readonly retryUs: number
  /** Until `remaining` would grow; 0 when it is whole. */
  readonly replenishUs: number
  /** Until the key would be as if never used. */
  readonly resetUs: number
  /** How long the accepted request must wait before it may run. */
  readonly delayUs: number
  /** The store's clock at the decision, in microseconds since the epoch. */
  readonly atUs: number
}

/**
 * Where the counts live. A store runs the step of each check's policy atomically; it knows no algorithm, and an
 * algorithm knows no store.
 */
export interface Store {
  /** Whether other processes count in it too. */
  readonly shared: boolean
  /**
   * Charges all checks or none: none if any check whose policy is not `shadow` is refused. A shadow check that is
   * refused is reported and not charged.
   * @throws when the store cannot answer; being refused is never an exception
   */
  consume(checks: readonly Check[], options: ConsumeOptions): Promise<readonly Verdict[]>
  /** Answers as {@link Store.consume} would, and charges nothing. */
  peek(checks: readonly Check[], options: ConsumeOptions): Promise<readonly Verdict[]>
  /** Gives units of earlier charges back, each as far as its algorithm can. */
  refund(refunds: readonly Refund[], options: ConsumeOptions): Promise<void>
  /** Forgets keys, as if they had never been used. */
  reset(keys: readonly string[], options: ConsumeOptions): Promise<void>
  /** Gives back what the store itself opened. Idempotent. */
  close(): Promise<void>
}
