import 'reflect-metadata'
import { badOption } from '@sluice/core'
import type { RateLimitStatement } from './options.js'

/** A decorator of classes and methods. */
export type ClassOrMethodDecorator = ClassDecorator & MethodDecorator

/** What decorators say of a class, or of a method. */
export interface Statements {
  /** In the order in which they are written. */
  readonly limits: readonly RateLimitStatement[]
  /** Which limits do not apply: those of these names, or all. */
  readonly skip: readonly string[] | 'all'
}

// Not a symbol of this module, which a program may load twice, as ESM and as CommonJS.
const metadataKey = 'sluice:rate-limit'
const none: Statements = { limits: [], skip: [] }

/** What decorators say of a class, or of the function of a method. */
export function statementsOf(target: object): Statements {
  return Reflect.getMetadata(metadataKey, target) ?? none
}

/** Whether a class or the function of a method is decorated. */
export function isStated(target: object): boolean {
  return Reflect.hasMetadata(metadataKey, target)
}

/**
 * Limits the calls of a method, or of all methods of a class together, beside the limits of the module. Several policies
 * of one decorator are one charge. Limits of class and method add up, but a method's policy replaces those of the same
 * name of its class. Enforced by `RateLimitGuard`. Mistakes are found when the application starts.
 * @example
 * @RateLimit({ limit: 5, window: '15m', onStoreError: 'deny' })
 * @Post('login')
 * login() { … }
 */
export function RateLimit(options: RateLimitStatement): ClassOrMethodDecorator {
  if (typeof options !== 'object' || options === null) {
    throw badOption(
      '@RateLimit',
      options,
      'options such as { limit: 5, window: "1m" }, or { group: "login" }',
    )
  }
  // Decorators run from the last one to the first.
  return stating(({ limits, skip }) => ({ limits: [options, ...limits], skip }))
}

/**
 * Takes limits away: on a method those of the module, of its class and of itself; on a class those of the module and of
 * itself. Without names all of them, else the policies, limiters and groups of these names.
 * @example
 * @SkipRateLimit()
 * @Get('health')
 * health() { … }
 */
export function SkipRateLimit(...names: string[]): ClassOrMethodDecorator {
  for (const name of names) {
    if (typeof name !== 'string')
      throw badOption('@SkipRateLimit', name, 'names of limits, or nothing for all')
  }
  return stating(({ limits, skip }) => ({
    limits,
    skip: names.length === 0 || skip === 'all' ? 'all' : [...skip, ...names],
  }))
}

function stating(change: (before: Statements) => Statements): ClassOrMethodDecorator {
  return (target: object, _name?: string | symbol, descriptor?: PropertyDescriptor) => {
    const subject: object = descriptor?.value ?? target
    Reflect.defineMetadata(metadataKey, change(Reflect.getOwnMetadata(metadataKey, subject) ?? none), subject)
  }
}
