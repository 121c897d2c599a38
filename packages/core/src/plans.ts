import { badOption, SluiceError, show, withoutCode } from './errors.js'
import { checkName, type Policy, type ResolvedPolicy, resolvePolicy } from './policy.js'

/** What a tier of customers gets: one policy, several that all apply, or no limit at all. */
export type Plan = Policy | readonly Policy[] | 'unlimited'

const resolved = Symbol.for('sluice.plans')

/** Plans that {@link definePlans} has checked, by name. */
export type Plans<P extends Record<string, Plan> = Record<string, Plan>> = Readonly<P> & {
  readonly [resolved]: ReadonlyMap<string, readonly ResolvedPolicy[]>
}

/**
 * Checks plans once, when a program starts. A policy without a name is known in keys by its place in the plan, so
 * that a changed limit finds the old count; plans whose policies share name or place, algorithm and window share
 * their count for a key that changes plan.
 * @throws SluiceError naming the plan, the option and its value
 * @example
 * const plans = definePlans({
 *   free: { limit: 100, window: '1h' },
 *   pro: [{ name: 'burst', limit: 50, window: '1s' }, { name: 'daily', limit: 100_000, window: '1d' }],
 *   enterprise: 'unlimited',
 * })
 */
export function definePlans<P extends Record<string, Plan>>(plans: P): Plans<P> {
  if (
    typeof plans !== 'object' ||
    plans === null ||
    Array.isArray(plans) ||
    Object.keys(plans).length === 0
  ) {
    throw badOption(
      'plans',
      plans,
      'an object with at least one plan, such as { free: { limit: 100, window: "1h" } }',
    )
  }
  const byName = new Map<string, readonly ResolvedPolicy[]>()
  for (const [name, plan] of Object.entries(plans)) {
    try {
      byName.set(checkName('plan name', name), plan === 'unlimited' ? [] : resolvePlan(plan))
    } catch (error) {
      if (!(error instanceof SluiceError)) throw error
      const [place] = error.path
      const where = `Plan ${show(name)}${typeof place === 'number' ? `, policy ${place + 1}` : ''}`
      throw new SluiceError(error.code, `${where}: ${withoutCode(error)}`, { path: [name, ...error.path] })
    }
  }
  return Object.freeze(Object.defineProperty({ ...plans }, resolved, { value: byName })) as Plans<P>
}

/** The checked policies of plans made by {@link definePlans}, or undefined for anything else. */
export function policiesOf(plans: unknown): ReadonlyMap<string, readonly ResolvedPolicy[]> | undefined {
  return typeof plans === 'object' && plans !== null ? (plans as Partial<Plans>)[resolved] : undefined
}

function resolvePlan(plan: Exclude<Plan, 'unlimited'>): readonly ResolvedPolicy[] {
  if (!Array.isArray(plan)) {
    if (typeof plan !== 'object')
      throw badOption('plan', plan, "a policy, an array of policies, or 'unlimited'")
    return [resolveAt(plan as Policy, 0)]
  }
  if (plan.length === 0) throw badOption('plan', plan, "at least one policy, or 'unlimited'")
  return resolvePolicies(plan, true)
}

/**
 * Resolves the policies of one decision and refuses two of one name.
 * @param byPlace whether an unnamed policy is known in keys by its place rather than by its numbers
 */
export function resolvePolicies(policies: readonly Policy[], byPlace: boolean): readonly ResolvedPolicy[] {
  const list = policies.map((policy, i) => {
    try {
      return byPlace ? resolveAt(policy, i) : resolvePolicy(policy)
    } catch (error) {
      if (!(error instanceof SluiceError)) throw error
      throw new SluiceError(error.code, withoutCode(error), { path: [i, ...error.path] })
    }
  })
  for (const [i, policy] of list.entries()) {
    if (
      list.some((other, j) => j < i && (other.name === policy.name || other.keySuffix === policy.keySuffix))
    ) {
      throw new SluiceError(
        'SLUICE_DUPLICATE_POLICY',
        `Two policies of one decision are called ${show(policy.name)}. Give each its own \`name\`.`,
        { path: [i] },
      )
    }
  }
  // Not frozen: elements of a frozen array are read by a slow path, once for each request and policy.
  return list
}

/** Resolves the policy at a place of a plan, which stands for its name in keys when it has none. */
function resolveAt(policy: Policy, i: number): ResolvedPolicy {
  return resolvePolicy(policy, policy?.name === undefined ? String(i + 1) : undefined)
}
