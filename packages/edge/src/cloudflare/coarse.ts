import { badOption, type Policy, type ResolvedPolicy, resolvePolicy } from '@sluice/core'

/** A policy as far as a rate-limit binding of Cloudflare can express it, and never stricter. */
export interface Coarse {
  readonly policy: ResolvedPolicy
  /** Units in each period and location. */
  readonly limit: number
  /** Seconds. */
  readonly period: 10 | 60
  /** What is different from the policy, each as a clause. */
  readonly differences: readonly string[]
}

/** @throws SluiceError for what is no policy, and for one that refuses nothing or everything */
export function coarsen(source: Policy): Coarse {
  const policy = resolvePolicy(source)
  const { burst, limit, windowMs, name, shadow } = policy
  if (shadow) throw badOption('shadow', shadow, 'a policy that refuses, since a binding always does')
  if (limit === 0) throw badOption('limit', limit, 'at least 1 for a binding')
  const period = windowMs < 60_000 ? 10 : 60
  // The most that any algorithm admits in so long a time: at once, and what comes back meanwhile.
  const most = burst + Math.ceil((limit * period * 1000) / windowMs)
  return {
    policy,
    limit: most,
    period,
    differences: [
      `it admits ${most} in ${period} s, as much as "${name}" can in any such time, with ${limit} in ${windowMs / 1000} s`,
      'each location of Cloudflare counts by itself, and with a delay, so that all together admit more',
      'a request takes 1, whatever its cost',
      `it tells no numbers: there are no quota headers, and Retry-After is ${period}`,
    ],
  }
}
