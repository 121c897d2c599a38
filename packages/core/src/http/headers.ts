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

/** A header of a set, and how its value is written. */
export interface HeaderField {
  readonly name: string
  readonly list: boolean
  /** @param described the one policy of these that older sets describe */
  value(policies: readonly PolicyDecision[], described: PolicyDecision): string
}

const quotas = list('RateLimit-Policy', (policies) => members(policies, quotaOf))
const states = list('RateLimit', (policies) => members(policies, stateOf))
const unnamedQuotas = list('RateLimit-Policy', quotasByNumber)
const draft7State = item(
  'RateLimit',
  (policy) => `limit=${policy.burst}, remaining=${policy.remaining}, reset=${resetSeconds(policy)}`,
)
const draft6Items = threeItems('RateLimit', resetSeconds)
const legacyEpoch = threeItems('X-RateLimit', (policy) => Math.ceil(policy.moreAtUs / 1e6))
const legacyDelta = threeItems('X-RateLimit', resetSeconds)

const fieldsOf: Record<HeaderSet, readonly HeaderField[]> = {
  'draft-8': [quotas, states],
  'draft-7': [unnamedQuotas, draft7State],
  'draft-6': [unnamedQuotas, ...draft6Items],
  legacy: legacyEpoch,
}

/** Where two sets share a field, the newest writes it. */
const newestFirst: readonly HeaderField[] = [...Object.values(fieldsOf).flat(), ...legacyDelta]

/** Reads the options `headers` and `legacyReset`: the fields to write, each once. */
export function resolveHeaderSets(headers: unknown, legacyReset: unknown): readonly HeaderField[] {
  if (legacyReset !== 'epoch' && legacyReset !== 'delta') {
    throw badOption('legacyReset', legacyReset, "'epoch' or 'delta'")
  }
  if (headers === false) return []
  const chosen: unknown[] = Array.isArray(headers) ? headers : [headers]
  const known = Object.keys(fieldsOf) as HeaderSet[]
  if (chosen.some((set) => !known.includes(set as HeaderSet))) {
    throw badOption(
      'headers',
      Array.isArray(headers) ? chosen.join(', ') : headers,
      `false, or some of ${known.join(', ')}`,
    )
  }
  return joinFields(
    chosen.map((set) =>
      set === 'legacy' && legacyReset === 'delta' ? legacyDelta : fieldsOf[set as HeaderSet],
    ),
  )
}

/** The fields of several limiters, each once. */
export function joinFields(lists: readonly (readonly HeaderField[])[]): readonly HeaderField[] {
  const joined = new Map<string, HeaderField>()
  for (const field of newestFirst) {
    if (!joined.has(field.name) && lists.some((fields) => fields.includes(field)))
      joined.set(field.name, field)
  }
  return [...joined.values()]
}

/** The quota headers of some policies; none where no policy applied, and shadows are left out. */
export function quotaHeaders(
  policies: readonly PolicyDecision[],
  fields: readonly HeaderField[],
): readonly ResponseHeader[] {
  const refusing = policies.some(isShadow) ? policies.filter((policy) => !policy.shadow) : policies
  // The numbers of one policy, never of the decision: that of a failed store has none, while others may apply.
  const described = describe(refusing)
  if (!described) return []
  return fields.map((field) => ({
    name: field.name,
    value: field.value(refusing, described),
    list: field.list,
  }))
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

function isShadow(policy: PolicyDecision): boolean {
  return policy.shadow
}

function members(policies: readonly PolicyDecision[], write: (policy: PolicyDecision) => string): string {
  return policies.length === 1 ? write(policies[0] as PolicyDecision) : policies.map(write).join(', ')
}

function quotaOf(policy: PolicyDecision): string {
  return knownAs(policy).quota
}

function stateOf(policy: PolicyDecision): string {
  const t = moreAfterSeconds(policy)
  const state = `${knownAs(policy).name};r=${policy.remaining}`
  return t === undefined ? state : `${state};t=${t}`
}

/** `RateLimit-Policy` as drafts 06 and 07 have it. */
function quotasByNumber(policies: readonly PolicyDecision[]): string {
  // Two policies must not share a quota there: the shortest window stands for them.
  const windows = new Map<number, number>()
  for (const policy of policies) {
    const seconds = windowSeconds(policy)
    windows.set(policy.burst, Math.min(seconds, windows.get(policy.burst) ?? seconds))
  }
  return [...windows].map(([quota, seconds]) => `${quota};w=${seconds}`).join(', ')
}

function threeItems(prefix: string, reset: (policy: PolicyDecision) => number): readonly HeaderField[] {
  return [
    item(`${prefix}-Limit`, (policy) => String(policy.burst)),
    item(`${prefix}-Remaining`, (policy) => String(policy.remaining)),
    item(`${prefix}-Reset`, (policy) => String(reset(policy))),
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

/** What is the same of a policy in every reply. */
interface Known extends Pick<PolicyDecision, 'limit' | 'windowMs' | 'burst'> {
  /** As a String of Structured Fields (RFC 9651). */
  readonly name: string
  readonly quota: string
}

const known = new Map<string, Known>()
const maxKnown = 1000

function knownAs(policy: PolicyDecision): Known {
  const { limit, windowMs, burst } = policy
  const found = known.get(policy.name)
  if (found?.burst === burst && found.limit === limit && found.windowMs === windowMs) return found
  // Names are printable ASCII by construction.
  const name = `"${policy.name.replace(/["\\]/g, '\\$&')}"`
  const made = { limit, windowMs, burst, name, quota: `${name};q=${burst};w=${windowSeconds(policy)}` }
  if (known.size >= maxKnown) known.clear()
  known.set(policy.name, made)
  return made
}

function list(name: string, value: (policies: readonly PolicyDecision[]) => string): HeaderField {
  return { name, list: true, value }
}

function item(name: string, value: (described: PolicyDecision) => string): HeaderField {
  return { name, list: false, value: (_policies, described) => value(described) }
}
