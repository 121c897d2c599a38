import { countingOptions, pickOptions, tellingOptions } from '@sluice/core'
import type { RateLimitOptions } from './enforce.js'

/** The options of a plugin that its routes and hooks inherit. */
export type Defaults = Pick<
  RateLimitOptions,
  (typeof countingOptions)[number] | (typeof tellingOptions)[number]
>

export const inheritable: readonly string[] = [...countingOptions, ...tellingOptions]

/** The options that routes inherit, of all those of a plugin. */
export function defaultsOf(options: RateLimitOptions): Defaults {
  return pickOptions(options, inheritable)
}

/** The options of a plugin's own limiter; beside a `limiter`, some are there for the routes alone. */
export function ownOptions(options: RateLimitOptions): RateLimitOptions {
  if (options.limiter === undefined) return options
  const counting: readonly string[] = countingOptions
  return pickOptions(
    options,
    Object.keys(options).filter((name) => !counting.includes(name)),
  )
}
