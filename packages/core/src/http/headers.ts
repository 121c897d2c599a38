import { type Decision, describe, type PolicyDecision } from '../decision.js'
import { badOption } from '../errors.js'

/**
 * A set of response headers, by the draft that defines it: `draft-8` serves drafts 08 to 11, and `legacy` is
 * `X-RateLimit-*`, which no standard defines.
 */
export type HeaderSet = 'draft-8' | 'draft-7' | 'draft-6' | 'legacy'

/** How `X-RateLimit-Reset` tells a time: `epoch` in seconds since 1970, `delta` in seconds from now. */
export type LegacyReset = 'epoch' | 'delta'

/** One response header. `list` tells that others may have added members of their own, which are kept. */
export interface ResponseHeader {
  readonly name: string
  readonly value: string
  readonly list: boolean
}

/** Writes the headers of one set. */
export type HeaderWriter = (policies: readonly PolicyDecision[]) => ResponseHeader[]

const writerOf: Record<HeaderSet, HeaderWriter> = {
  'draft-8': draft8,
  'draft-7': draft7,
  'draft-6': draft6,
  legacy: legacyEpoch,
}

/** Where two sets share a field, the newest writes it. */
const newestFirst: readonly HeaderWriter[] = [draft8, draft7, draft6, legacyEpoch, legacyDelta]

/** Reads the options `headers` and `legacyReset`. */
export function resolveHeaderSets(headers: unknown, legacyReset: unknown): readonly HeaderWriter[] {
  if (legacyReset !== 'epoch' && legacyReset !== 'delta') {
    throw badOption('legacyReset', legacyReset, "'epoch' or 'delta'")
  }
  if (headers === false) return []
  const chosen: unknown[] = Array.isArray(headers) ? headers : [headers]
  const known = Object.keys(writerOf) as HeaderSet[]
  if (chosen.some((set) => !known.includes(set as HeaderSet))) {
    throw badOption(
      'headers',
      Array.isArray(headers) ? chosen.join(', ') : headers,
      `false, or some of ${known.join(', ')}`,
    )
  }
  const writers = chosen.map((set) => writerOf[set as HeaderSet])
  return legacyReset === 'epoch'
    ? writers
    : writers.map((writer) => (writer === legacyEpoch ? legacyDelta : writer))
}

/** The quota headers of some policies, each field once; none where no policy applied, and shadows are left out. */
export function quotaHeaders(
  policies: readonly PolicyDecision[],
  writers: readonly HeaderWriter[],
): ResponseHeader[] {
  const refusing = policies.filter((policy) => !policy.shadow)
  if (refusing.length === 0) return []
  const headers = new Map<string, ResponseHeader>()
  for (const write of newestFirst) {
    if (!writers.includes(write)) continue
    for (const header of write(refusing)) {
      if (!headers.has(header.name)) headers.set(header.name, header)
    }
  }
  return [...headers.values()]
}

/** Whole seconds a denied client must wait, at least 1; undefined for an allowed one, or when no wait would help. */
export function retryAfterSeconds(decision: Pick<Decision, 'allowed' | 'retryAfterMs'>): number | undefined {
  return decision.allowed || decision.retryAfterMs === Number.POSITIVE_INFINITY
    ? undefined
    : Math.max(1, toSeconds(decision.retryAfterMs))
}

/** The decision with every wait of a denial made longer, for clients that should not all come back at once. */
export function postpone(decision: Decision, ms: number): Decision {
  const policies = decision.policies.map((policy) => {
    const { allowed, retryAfterMs, moreAtUs } = policy
    return allowed || retryAfterMs === Number.POSITIVE_INFINITY
      ? policy
      : { ...policy, retryAfterMs: retryAfterMs + ms, moreAtUs: moreAtUs + ms * 1000 }
  })
  return { ...decision, retryAfterMs: decision.retryAfterMs + ms, policies }
}

function draft8(policies: readonly PolicyDecision[]): ResponseHeader[] {
  const quotas = policies.map(
    (policy) => `${sfString(policy.name)};q=${policy.burst};w=${windowSeconds(policy)}`,
  )
  const states = policies.map((policy) => {
    const t = moreAfterSeconds(policy)
    return `${sfString(policy.name)};r=${policy.remaining}${t === undefined ? '' : `;t=${t}`}`
  })
  return [list('RateLimit-Policy', quotas), list('RateLimit', states)]
}

function draft7(policies: readonly PolicyDecision[]): ResponseHeader[] {
  const described = describedOf(policies)
  const state = `limit=${described.burst}, remaining=${described.remaining}, reset=${resetSeconds(described)}`
  return [unnamedQuotas(policies), item('RateLimit', state)]
}

function draft6(policies: readonly PolicyDecision[]): ResponseHeader[] {
  const described = describedOf(policies)
  return [unnamedQuotas(policies), ...threeItems('RateLimit', described, resetSeconds(described))]
}

function legacyEpoch(policies: readonly PolicyDecision[]): ResponseHeader[] {
  const described = describedOf(policies)
  return threeItems('X-RateLimit', described, Math.ceil(described.moreAtUs / 1e6))
}

function legacyDelta(policies: readonly PolicyDecision[]): ResponseHeader[] {
  const described = describedOf(policies)
  return threeItems('X-RateLimit', described, resetSeconds(described))
}

/** The numbers of one policy, never of the decision: that of a failed store has none, while others may apply. */
function describedOf(policies: readonly PolicyDecision[]): PolicyDecision {
  return describe(policies) as PolicyDecision
}

/** `RateLimit-Policy` as drafts 06 and 07 have it. */
function unnamedQuotas(policies: readonly PolicyDecision[]): ResponseHeader {
  // Two policies must not share a quota there: the shortest window stands for them.
  const windows = new Map<number, number>()
  for (const policy of policies) {
    const seconds = windowSeconds(policy)
    windows.set(policy.burst, Math.min(seconds, windows.get(policy.burst) ?? seconds))
  }
  return list(
    'RateLimit-Policy',
    [...windows].map(([quota, seconds]) => `${quota};w=${seconds}`),
  )
}

function threeItems(prefix: string, policy: PolicyDecision, reset: number): ResponseHeader[] {
  return [
    item(`${prefix}-Limit`, policy.burst),
    item(`${prefix}-Remaining`, policy.remaining),
    item(`${prefix}-Reset`, reset),
  ]
}

/** The reset of the older sets, from now: as `t`, and until the limit is whole where no wait would help. */
function resetSeconds(policy: PolicyDecision): number {
  return moreAfterSeconds(policy) ?? toSeconds(policy.resetAfterMs)
}

/** Until a policy that denies would admit, or an allowed client has more; undefined when no wait would help. */
function moreAfterSeconds(policy: PolicyDecision): number | undefined {
  return policy.allowed ? toSeconds(policy.replenishAfterMs) : retryAfterSeconds(policy)
}

/** The window in which `burst` units become available, in whole seconds: a window's own, a bucket's time to fill. */
function windowSeconds({ burst, limit, windowMs }: PolicyDecision): number {
  return burst === limit ? toSeconds(windowMs) : Math.ceil((burst * windowMs) / (limit * 1000))
}

function toSeconds(milliseconds: number): number {
  return Math.ceil(milliseconds / 1000)
}

/** A String of Structured Fields (RFC 9651); names are printable ASCII by construction. */
function sfString(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`
}

function list(name: string, members: readonly string[]): ResponseHeader {
  return { name, value: members.join(', '), list: true }
}

function item(name: string, value: number | string): ResponseHeader {
  return { name, value: String(value), list: false }
}
