import {
  badOption,
  checkLogger,
  checkName,
  definePlans,
  type Logger,
  type Plan,
  type Plans,
  type Policy,
  type ResolvedPolicy,
  resolvePolicy,
} from '@sluice/core'

/** The limiter of the origin, for which something is generated: in the forms in which a limiter takes its policies. */
export type CountedPolicies = Partial<Policy> & {
  /** The name of the limiter, and in the short form of its policy. Default `'default'`. */
  name?: string
  policies?: readonly Policy[]
  plans?: Plans | Record<string, Plan>
  /** The plan to generate for, where there are plans: the most generous one, since nobody here knows a client's. */
  plan?: string
  /** Where each difference is written, one line each. Default `console`. */
  logger?: Logger
}

/** The policies of the options, read and checked. */
export interface ReadPolicies {
  readonly name: string
  readonly policies: readonly ResolvedPolicy[]
  /** Notes a difference. */
  readonly note: (difference: string) => void
  readonly differences: readonly string[]
}

/**
 * Reads what is to be generated from.
 * @param what what is generated, to begin the lines of the log with
 * @throws SluiceError with the option, its value and what is expected
 */
export function readPolicies(what: string, options: CountedPolicies): ReadPolicies {
  const { policies, plans, plan, logger = console, ...short } = options
  checkLogger(logger)
  const { name = 'default' } = short
  checkName('name', name)
  const differences: string[] = []
  const note = (difference: string): void => {
    differences.push(difference)
    logger.warn(`sluice: ${what} of ${JSON.stringify(name)}: ${difference}`)
  }
  return { name, policies: listOf({ policies, plans, plan, short }), note, differences }
}

function listOf({
  policies,
  plans,
  plan,
  short,
}: Pick<CountedPolicies, 'policies' | 'plans' | 'plan'> & {
  short: Partial<Policy>
}): readonly ResolvedPolicy[] {
  if (plans === undefined && plan !== undefined) throw badOption('plan', plan, '`plans` beside it')
  if (policies === undefined && plans === undefined) return [resolvePolicy(short as Policy)]
  const { name: _, ...beside } = short
  const [extra] = Object.keys(beside)
  if (extra !== undefined || (policies && plans)) {
    throw badOption(
      extra ?? 'plans',
      'given together',
      'one of: `limit` and `window`, `policies`, or `plans`',
    )
  }
  const given = plans ? planOf(definePlans({ ...plans }), plan) : policies
  if (!Array.isArray(given) || given.length === 0) {
    throw badOption('policies', given, 'an array of at least one policy')
  }
  return given.map((policy) => resolvePolicy(policy))
}

function planOf(plans: Readonly<Record<string, Plan>>, name: unknown): readonly Policy[] {
  const plan = typeof name === 'string' && Object.hasOwn(plans, name) ? plans[name] : undefined
  if (plan === undefined || plan === 'unlimited') {
    throw badOption('plan', name, 'the name of the most generous of `plans` that has limits')
  }
  return Array.isArray(plan) ? plan : [plan as Policy]
}

/** Reads the option `key` of a generator: the client's address, or a header. */
export function checkHeaderName(option: string, name: unknown): string {
  if (typeof name !== 'string' || !/^[!#$%&'*+.^_`|~0-9a-z-]{1,64}$/i.test(name)) {
    throw badOption(option, name, 'the name of a request header')
  }
  return name.toLowerCase()
}
