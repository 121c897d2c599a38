import type { Algorithm } from './algorithms/index.js'
import type { ResolvedPolicy } from './policy.js'
import { attachReceipts, receiptsOf } from './receipt.js'
import type { Verdict } from './store.js'

/** Why a request was allowed or denied. */
export type Reason = 'ok' | 'quota' | 'cost' | 'blocked' | 'store-error' | 'skipped' | 'unlimited'

/** One policy's part in a {@link Decision}. */
export interface PolicyDecision {
  readonly name: string
  readonly algorithm: Algorithm
  /** Whether this policy would admit the request, whatever the others say. */
  readonly allowed: boolean
  /** Units per window. */
  readonly limit: number
  readonly windowMs: number
  /** The most units that can pass at once: the limit, or a bucket's burst. */
  readonly burst: number
  /** The largest cost that would pass now, after this request. */
  readonly remaining: number
  /** Milliseconds, rounded up, until this cost could pass; 0 when allowed, Infinity when it never can. */
  readonly retryAfterMs: number
  /** Milliseconds, rounded up, until `remaining` grows; 0 when it is whole. */
  readonly replenishAfterMs: number
  /** Milliseconds, rounded up, until the limit is whole again. */
  readonly resetAfterMs: number
  /**
   * When that wait ends, by the store's clock, in microseconds since the epoch: of `replenishAfterMs` when allowed, of
   * `retryAfterMs` when denied, and of `resetAfterMs` when no wait helps this cost.
   */
  readonly moreAtUs: number
  /** How long the accepted request must wait before it may run, in milliseconds. */
  readonly delayMs: number
  /** Whether the policy only reports and never refuses. */
  readonly shadow: boolean
}

/** The answer for one request. Being denied is a value, never an exception. */
export interface Decision {
  readonly allowed: boolean
  /**
   * `ok`; denied by a block of the key (`blocked`), by `cost` (more than could ever pass) or for want of `quota`;
   * `store-error` when the store failed and nobody else decided; `skipped` and `unlimited` when no policy applied.
   */
  readonly reason: Reason
  /**
   * Who decided: the `store`; units that this process had drawn from it before (`lease`); a denial of the store's that
   * still holds (`deny-cache`); this process alone while the store was away (`local`); nobody (`none`: no policy
   * applied, or the store failed).
   */
  readonly source: 'store' | 'lease' | 'deny-cache' | 'local' | 'none'
  /** Whether the store failed, so that it has not counted the request. */
  readonly degraded: boolean
  readonly key: string
  readonly plan?: string
  /**
   * The most units that can pass at once under the policy that the numbers of this decision describe: on a denial the
   * denying policy with the longest wait, else the one with the least remaining. Infinity when no policy applied.
   */
  readonly limit: number
  readonly remaining: number
  /** Milliseconds until this cost could pass: the longest wait of the denying policies; Infinity when it never can. */
  readonly retryAfterMs: number
  readonly replenishAfterMs: number
  readonly resetAfterMs: number
  /** How long an accepted request must wait before it may run, in milliseconds. */
  readonly delayMs: number
  /** When it was decided, by the store's clock, in milliseconds since the epoch. */
  readonly atMs: number
  /** The same numbers for each policy that applied. */
  readonly policies: readonly PolicyDecision[]
}

/** What is known of the request that a decision answers. */
export interface Subject {
  readonly key: string
  readonly plan?: string
}

/** Milliseconds, rounded up, of a store's microseconds; -1 (never) is Infinity. */
function ceilMs(us: number): number {
  return us < 0 ? Number.POSITIVE_INFINITY : Math.ceil(us / 1000)
}

/**
 * Puts the verdicts of all policies together; those of policies that the store could not decide are left out.
 * @param source who gave them, unless they say so themselves
 * @param blockedUs until a block of the key ends, if there is one, which denies whatever the policies say
 */
export function decideFrom(
  subject: Subject,
  policies: readonly ResolvedPolicy[],
  verdicts: readonly Verdict[],
  source: 'store' | 'local',
  blockedUs = 0,
): Decision {
  const parts = new Array<PolicyDecision>(policies.length)
  let count = 0
  for (let i = 0; i < policies.length; i++) {
    const policy = policies[i] as ResolvedPolicy
    const verdict = verdicts[i] as Verdict
    if (verdict.failed) continue
    const { allowed, retryUs, replenishUs, resetUs } = verdict
    const moreUs = allowed ? replenishUs : retryUs < 0 ? resetUs : retryUs
    parts[count++] = {
      name: policy.name,
      algorithm: policy.algorithm,
      allowed,
      limit: policy.limit,
      windowMs: policy.windowMs,
      burst: policy.burst,
      remaining: verdict.remaining,
      retryAfterMs: ceilMs(retryUs),
      replenishAfterMs: ceilMs(replenishUs),
      resetAfterMs: ceilMs(resetUs),
      moreAtUs: verdict.atUs + moreUs,
      delayMs: ceilMs(verdict.delayUs),
      shadow: policy.shadow,
    }
  }
  if (count < parts.length) parts.length = count
  const { atUs, source: who = source } = verdicts[0] as Verdict
  const decision = combine(subject, parts, who, source === 'local', Math.floor(atUs / 1000))
  if (blockedUs === 0) return decision
  const retryAfterMs = Math.max(decision.retryAfterMs, ceilMs(blockedUs))
  return { ...decision, allowed: false, reason: 'blocked', remaining: 0, retryAfterMs, delayMs: 0 }
}

/** The decision that a list of policies amounts to: allowed if every policy that is not `shadow` allows. */
function combine(
  subject: Subject,
  policies: readonly PolicyDecision[],
  source: Decision['source'],
  degraded: boolean,
  atMs: number,
): Decision {
  const described = describe(policies)
  const allowed = described?.allowed ?? true
  // Written out, here and below: spreading an object costs more than all the rest of a decision.
  return {
    key: subject.key,
    plan: subject.plan,
    source,
    degraded,
    atMs,
    allowed,
    reason: allowed ? 'ok' : described?.retryAfterMs === Number.POSITIVE_INFINITY ? 'cost' : 'quota',
    limit: described?.burst ?? Number.POSITIVE_INFINITY,
    remaining: described?.remaining ?? Number.POSITIVE_INFINITY,
    retryAfterMs: described?.retryAfterMs ?? 0,
    replenishAfterMs: described?.replenishAfterMs ?? 0,
    resetAfterMs: described?.resetAfterMs ?? 0,
    delayMs: allowed ? longestDelayMs(policies) : 0,
    policies,
  }
}

function longestDelayMs(policies: readonly PolicyDecision[]): number {
  let longest = 0
  for (const { delayMs } of policies) if (delayMs > longest) longest = delayMs
  return longest
}

/**
 * The one policy that older headers and the numbers of a decision describe: of those that deny the one with the
 * longest wait, else the one with the least remaining; ties go to the longer reset. Shadow policies are left out.
 */
export function describe(policies: readonly PolicyDecision[]): PolicyDecision | undefined {
  let described: PolicyDecision | undefined
  for (const policy of policies) {
    if (!policy.shadow && (described === undefined || tighter(policy, described))) described = policy
  }
  return described
}

function tighter(a: PolicyDecision, b: PolicyDecision): boolean {
  if (a.allowed !== b.allowed) return !a.allowed
  if (!a.allowed && a.retryAfterMs !== b.retryAfterMs) return a.retryAfterMs > b.retryAfterMs
  if (a.allowed && a.remaining !== b.remaining) return a.remaining < b.remaining
  return a.resetAfterMs > b.resetAfterMs
}

/** A decision to which no policy applied: the request was skipped, unlimited, or the store failed. */
export function decideWithoutPolicy(
  subject: Subject,
  reason: 'skipped' | 'unlimited' | 'store-error',
  allowed: boolean,
  atMs: number,
): Decision {
  return {
    key: subject.key,
    plan: subject.plan,
    allowed,
    reason,
    source: 'none',
    degraded: reason === 'store-error',
    limit: Number.POSITIVE_INFINITY,
    remaining: allowed ? Number.POSITIVE_INFINITY : 0,
    retryAfterMs: allowed ? 0 : 1000,
    replenishAfterMs: 0,
    resetAfterMs: 0,
    delayMs: 0,
    atMs,
    policies: [],
  }
}

/** What one limiter decided of a request. */
export interface DecisionPart {
  readonly limiter: string
  readonly decision: Decision
}

/**
 * The decision of several limiters on one request: one list of policies, in their order, denied if one of them denied.
 * Policies of the same name are told apart as `limiter/policy`, and where that is the same too as `limiter/policy/2`.
 */
export function addUp(parts: readonly DecisionPart[]): Decision {
  const latest = (parts.at(-1) as DecisionPart).decision
  if (parts.length === 1) return latest
  const names = parts.flatMap(({ decision }) => decision.policies.map((policy) => policy.name))
  const taken = new Set<string>()
  const policies = parts.flatMap(({ limiter, decision }) =>
    decision.policies.map((policy) => {
      const unique = names.indexOf(policy.name) === names.lastIndexOf(policy.name)
      const full = unique ? policy.name : `${limiter}/${policy.name}`
      let name = full
      for (let n = 2; taken.has(name); n++) name = `${full}/${n}`
      taken.add(name)
      return { ...policy, name }
    }),
  )
  const degraded = parts.some(({ decision }) => decision.degraded)
  // What no policy decided stands beside them: a block, or a store that failed.
  const apart =
    policies.length === 0 || (!latest.allowed && ['blocked', 'store-error'].includes(latest.reason))
  const decision = apart
    ? { ...latest, policies, degraded }
    : combine(latest, policies, latest.source, degraded, latest.atMs)
  return attachReceipts(
    decision,
    parts.flatMap((part) => receiptsOf(part.decision)),
  )
}
