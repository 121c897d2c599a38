import { badOption } from '../errors.js'
import { hash } from '../key.js'

/** How and where a limiter counts, which one that is given has already. */
export const countingOptions = [
  'store',
  'timeoutMs',
  'onStoreError',
  'nodes',
  'denyStaleMs',
  'onEvent',
  'logger',
] as const

/** Who is counted, and what clients are told. */
export const tellingOptions = [
  'key',
  'preflight',
  'headers',
  'legacyReset',
  'retryJitterMs',
  'onLimited',
  'message',
  'statusCode',
] as const

/** What is looked at here of the options of a limiter. */
interface LimiterLike {
  limiter?: unknown
  name?: string | undefined
  onLimited?: unknown
  message?: unknown
  statusCode?: unknown
}

/**
 * The options of one limiter of an application, completed by those of the application. A reply of its own replaces the
 * other kinds of reply.
 */
export function inheritOptions<T extends LimiterLike>(options: T, defaults: Partial<T>): T {
  const names = options.limiter === undefined ? [...countingOptions, ...tellingOptions] : tellingOptions
  const inherited: LimiterLike = pickOptions(defaults, names)
  if (options.onLimited !== undefined) {
    delete inherited.message
    delete inherited.statusCode
  }
  if (options.message !== undefined || options.statusCode !== undefined) delete inherited.onLimited
  return { ...inherited, ...pickOptions(options, Object.keys(options)) } as T
}

/** These options, where they are given. */
export function pickOptions<T extends object>(options: T, names: readonly string[]): T {
  return Object.fromEntries(
    names.map((name) => [name, options[name as keyof T]]).filter(([, value]) => value !== undefined),
  ) as T
}

/** Options with a name, unless they have one or name a limiter, which has its own. */
export function withName<T extends LimiterLike>(options: T, name: string): T {
  return options?.limiter === undefined && options?.name === undefined ? { ...options, name } : options
}

/** A name as a limiter takes it; where it does not fit, its end is a hash of all. */
export function fitName(name: string): string {
  if (/^[\x20-\x7e]{1,64}$/.test(name)) return name
  return `${name.slice(0, 42).replace(/[^\x20-\x7e]/g, '?')}~${hash(name).slice(0, 21)}`
}

/**
 * Finds what an option `group` names.
 * @param others the options beside it, which a group has in its own place
 * @param owner who has `groups`: `plugin`, `module`
 * @throws SluiceError for a group that there is not, or with other options beside it
 */
export function findGroup<T>(
  groups: ReadonlyMap<string, T>,
  name: unknown,
  others: object,
  owner: string,
): T {
  const group = groups.get(name as string)
  if (!group) {
    const known = [...groups.keys()].join(', ') || 'none is defined'
    throw badOption('group', name, `one of the \`groups\` of the ${owner} (${known})`)
  }
  const [other] = Object.entries(others)
  if (other) {
    const where = `it in \`groups\` of the ${owner}, where a group has its options`
    throw badOption(other[0], other[1], where)
  }
  return group
}
