import { badOption, SluiceError, show } from '../errors.js'
import type { ResolvedPolicy } from '../policy.js'
import { defaultMax, defaultTtlMs, type Reserve } from './reserve.js'

/** How the units of one decision are leased: by the smallest size and the shortest life among its policies. */
export interface LeaseTerms {
  readonly max: number
  readonly ttlMs: number
  /** How many processes share the store, where that is known beforehand. */
  readonly nodes?: number | undefined
}

/**
 * The terms on which the policies of one decision lease together, or undefined if they do not.
 * @param reserve the limiter's, for policies without one of their own
 * @throws SluiceError where leases are asked for that cannot be, or that another policy of the decision forbids
 */
export function leaseTermsOf(
  policies: readonly ResolvedPolicy[],
  reserve: Reserve | undefined,
): LeaseTerms | undefined {
  const wishes = policies.map((policy) => policy.reserve ?? reserve ?? false)
  for (const [i, policy] of policies.entries()) {
    if (wishes[i] !== false && policy.leaseUs === undefined) {
      throw badOption(
        'reserve',
        wishes[i],
        `false on the ${policy.algorithm} policy ${show(policy.name)}, whose units cannot be leased; decisions under it then ask the store`,
      )
    }
  }
  if (wishes.includes(false)) {
    const lone = policies.find((policy) => policy.reserve !== undefined && policy.reserve !== false)
    if (!lone) return undefined
    throw new SluiceError(
      'SLUICE_BAD_OPTION',
      `Option \`reserve\` is set on policy ${show(lone.name)} and not on all others of the same decision, which are charged together. Expected it on each of them, or on none`,
    )
  }
  // What refuses nothing has nothing to lease.
  if (policies.every(({ shadow }) => shadow)) return undefined
  const terms = policies.map((policy, i) => {
    const { max = defaultMax, ttlMs = defaultTtlMs } = wishes[i] as Exclude<Reserve, boolean>
    return { max, ttlMs: Math.min(ttlMs, policy.windowMs) }
  })
  return {
    max: Math.min(...terms.map(({ max }) => max)),
    ttlMs: Math.min(...terms.map(({ ttlMs }) => ttlMs)),
  }
}
