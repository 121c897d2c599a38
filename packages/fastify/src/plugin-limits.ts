import {
  badOption,
  findGroup,
  inheritOptions,
  type Limiter,
  MemoryStore,
  reading,
  show,
  withName,
} from '@sluice/core'
import type { RouteOptions } from 'fastify'
import { type Enforce, enforce, type RateLimitOptions } from './enforce.js'
import type { Defaults } from './inherit.js'
import { limiterNameOf, methodsOf, patternOf } from './route.js'

/** In the order in which a request passes them. */
const stages: readonly Stage[] = ['onRequest', 'preParsing', 'preValidation', 'preHandler']

/** A stage of a request at which it can be limited. */
export type Stage = 'onRequest' | 'preParsing' | 'preValidation' | 'preHandler'

/** The options `config.rateLimit` of a route that is limited by itself. */
export type RouteRateLimit = {
  /** Whether these limits take the place of the global ones, rather than to add to them. Default false. */
  replace?: boolean
  /** The stage at which they apply, after the route's own hooks of that stage. Default: the plugin's. */
  hook?: Stage
} & (
  | (RateLimitOptions & { group?: never })
  | ({
      /** One of the plugin's `groups`, which has the options of the limiter that all its routes share. */
      group: string
    } & { [option in keyof RateLimitOptions]?: never })
)

/** A limiter of a route, and when it applies. */
interface RouteLimit {
  readonly stage: Stage
  readonly enforce: Enforce
}

/** @throws SluiceError */
export function checkStage(stage: unknown): Stage {
  if (!stages.includes(stage as Stage)) throw badOption('hook', stage, `one of ${stages.join(', ')}`)
  return stage as Stage
}

/** All limiters that one registration of the plugin makes, for itself, its groups, routes and hooks. */
export class PluginLimits {
  readonly #defaults: Defaults
  readonly #stage: Stage
  readonly #ownStore: MemoryStore | undefined
  readonly #made: Limiter[] = []
  readonly #groups = new Map<string, Enforce>()
  /** The limiters of GET routes by their pattern, and the options that they were made of. */
  readonly #gets = new Map<string, { given: object; enforce: Enforce }>()

  /** @param stage of routes that name none */
  constructor(defaults: Defaults, stage: Stage) {
    this.#ownStore = defaults.store === undefined ? new MemoryStore() : undefined
    this.#defaults = { store: this.#ownStore, ...defaults }
    this.#stage = stage
  }

  /** Makes a limiter with these options and the defaults. */
  make(options: RateLimitOptions): Enforce {
    const made = enforce(inheritOptions(options, this.#defaults))
    if (options.limiter === undefined) this.#made.push(made.limiter)
    return made
  }

  /** Makes the limiter of a group. */
  addGroup(name: string, options: RateLimitOptions): void {
    const made = reading(`Group ${show(name)}`, ['groups', name], () => this.make(withName(options, name)))
    this.#groups.set(name, made)
  }

  /** Reads the options of a route, and finds or makes its limiter. */
  ofRoute(route: RouteOptions & { routePath: string; prefix: string }, given: unknown): RouteLimit {
    const methods = methodsOf(route)
    const pattern = patternOf(route)
    return reading(`Route ${methods.join(',')} ${pattern}`, ['config', 'rateLimit'], () => {
      if (typeof given !== 'object' || given === null) {
        throw badOption(
          'config.rateLimit',
          given,
          'options such as { limit: 5, window: "1m" }, or false for no global limit',
        )
      }
      const { replace = false, hook = this.#stage, group, ...options } = given as RouteRateLimit
      if (typeof replace !== 'boolean') throw badOption('replace', replace, 'true or false')
      const stage = checkStage(hook)
      if (group !== undefined) return { stage, enforce: findGroup(this.#groups, group, options, 'plugin') }
      const get = this.#gets.get(pattern)
      // Fastify adds a HEAD route to a GET route, with the same options: they are one.
      if (methods.join() === 'HEAD' && get?.given === given) return { stage, enforce: get.enforce }
      const enforce = this.make(withName(options as RateLimitOptions, limiterNameOf(methods, pattern)))
      if (methods.includes('GET')) this.#gets.set(pattern, { given, enforce })
      return { stage, enforce }
    })
  }

  /** Closes the limiters that were made here, which frees their names. */
  async close(): Promise<void> {
    await Promise.all(this.#made.map((limiter) => limiter.close()))
    await this.#ownStore?.close()
  }
}
