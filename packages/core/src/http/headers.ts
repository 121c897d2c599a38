import { type Decision, describe, type PolicyDecision } from '../decision.js'
import { badOption } from '../errors.js'

/** A set of response headers by the draft that defines it; `draft-8` serves drafts 08 to 11. */
export type HeaderSet = keyof typeof headerSets

/** One response header. `list` tells that others may have added members of their own, which are kept. */
export interface ResponseHeader {
  readonly name: string
  readonly value: string
  readonly list: boolean
}

type Writer = (policies: readonly PolicyDecision[]) => ResponseHeader[]

/** The sets, newest first: where two of them share a field, the newest writes it. */
const headerSets = {
  'draft-8': draft8,
  'draft-6': draft6,
} satisfies Record<string, Writer>

/** Reads the option `headers`: the chosen sets, newest first. */
export function resolveHeaderSets(headers: unknown): readonly HeaderSet[] {
  if (headers === false) return []
  const chosen: unknown[] = Array.isArray(headers) ? headers : [headers]
  const known = Object.keys(headerSets) as HeaderSet[]
  if (chosen.some((set) => !known.includes(set as HeaderSet))) {
    throw badOption(
      'headers',
      Array.isArray(headers) ? chosen.join(', ') : headers,
      `false, or some of ${known.join(', ')}`,
    )
  }
  return known.filter((set) => chosen.includes(set))
}

/** The quota headers of a decision; none where no policy applied, and shadow policies are left out. */
export function quotaHeaders(decision: Decision, sets: readonly HeaderSet[]): ResponseHeader[] {
  const policies = decision.policies.filter((policy) => !policy.shadow)
  if (policies.length === 0) return []
  const headers = new Map<string, ResponseHeader>()
  for (const set of sets) {
    for (const header of headerSets[set](policies)) {
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

function draft6(policies: readonly PolicyDecision[]): ResponseHeader[] {
  // Two policies must not share a quota there: the shortest window stands for them.
  const windows = new Map<number, number>()
  for (const policy of policies) {
    const seconds = windowSeconds(policy)
    windows.set(policy.burst, Math.min(seconds, windows.get(policy.burst) ?? seconds))
  }
  // The numbers of one policy, never of the decision: that of a failed store has none, while others may apply.
  const described = describe(policies) as PolicyDecision
  return [
    list(
      'RateLimit-Policy',
      [...windows].map(([quota, seconds]) => `${quota};w=${seconds}`),
    ),
    item('RateLimit-Limit', described.burst),
    item('RateLimit-Remaining', described.remaining),
    item('RateLimit-Reset', moreAfterSeconds(described) ?? toSeconds(described.resetAfterMs)),
  ]
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

function item(name: string, value: number): ResponseHeader {
  return { name, value: String(value), list: false }
}
