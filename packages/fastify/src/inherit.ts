import type { RateLimitOptions } from './enforce.js'

/** What a limiter of a plugin takes from it: how and where it counts. */
const ofLimiter = ['store', 'timeoutMs', 'onStoreError', 'nodes', 'onEvent', 'logger'] as const
/** The same of a given `limiter`, which has all that already: who is counted, and what clients are told. */
const ofHttp = [
  'key',
  'preflight',
  'headers',
  'legacyReset',
  'retryJitterMs',
  'onLimited',
  'message',
  'statusCode',
] as const

/** The options of a plugin that its routes and hooks inherit. */
export type Defaults = Pick<RateLimitOptions, (typeof ofLimiter)[number] | (typeof ofHttp)[number]>

export const inheritable: readonly string[] = [...ofLimiter, ...ofHttp]

/** The options that routes inherit, of all those of a plugin. */
export function defaultsOf(options: RateLimitOptions): Defaults {
  return pick(options, inheritable)
}

/** The options of a plugin's own limiter; beside a `limiter`, some are there for the routes alone. */
export function ownOptions(options: RateLimitOptions): RateLimitOptions {
  if (options.limiter === undefined) return options
  return pick(
    options,
    Object.keys(options).filter((name) => !ofLimiter.includes(name as (typeof ofLimiter)[number])),
  )
}

/** Options completed by the defaults. A reply of one's own replaces the other kinds of reply of the defaults. */
export function inherit(options: RateLimitOptions, defaults: Defaults): RateLimitOptions {
  const inherited = pick(defaults, options.limiter === undefined ? inheritable : ofHttp)
  if (options.onLimited !== undefined) {
    delete inherited.message
    delete inherited.statusCode
  }
  if (options.message !== undefined || options.statusCode !== undefined) delete inherited.onLimited
  return { ...inherited, ...pick(options, Object.keys(options)) }
}

/** These options, where they are given. */
function pick<T extends object>(options: T, names: readonly string[]): T {
  return Object.fromEntries(
    names.map((name) => [name, options[name as keyof T]]).filter(([, value]) => value !== undefined),
  ) as T
}
