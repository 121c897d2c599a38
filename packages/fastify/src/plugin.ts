import { badOption, refuseUnknownOptions } from '@sluice/core'
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { fastifyPlugin } from 'fastify-plugin'
import type { Enforce, RateLimitOptions } from './enforce.js'
import { defaultsOf, inheritable, ownOptions } from './inherit.js'
import { checkStage, PluginLimits, type Stage } from './plugin-limits.js'
import { hookOf, madeInHandler, misused } from './rate-limit.js'

/** Options of {@link rateLimitPlugin}. */
export type RateLimitPluginOptions = RateLimitOptions & {
  /**
   * Whether these options limit every request of the instance, those of unknown URLs included. With false they are but
   * defaults, and only routes with `config.rateLimit` are limited. Default true.
   */
  global?: boolean
  /** The stage at which requests are limited: after authentication, for a key by user. Default `'onRequest'`. */
  hook?: Stage
  /** Limiters that several routes share, by the name that their `config.rateLimit.group` gives. */
  groups?: Readonly<Record<string, RateLimitOptions>>
}

/** On a route's config: that a plugin has read its limits. */
const read = Symbol('sluice.read')
/** On an instance: the limits from which its routes and hooks inherit, of the last plugin that was registered. */
const nearest = Symbol('sluice.nearest')

interface Limited {
  [nearest]?: PluginLimits
}

/**
 * Limits the requests of an instance and its children, and reads `config.rateLimit` of their routes.
 *
 * Limits of a route add to the global ones unless it says `replace: true`; `false` takes it out of them. Routes, groups
 * and hooks made by `app.rateLimit()` inherit of the plugin's options `store`, `timeoutMs`, `onStoreError`, `nodes`,
 * `denyStaleMs`, `onEvent`, `logger`, `key`, `preflight`, `headers`, `legacyReset`, `retryJitterMs`, and `onLimited` or `message` and
 * `statusCode`; routes also `hook`. Without a `store` they all count in one memory. Who registers the plugin again, on
 * the same instance or a child, adds to the limits; routes then inherit from the nearest, and of several on one instance
 * from the last. Closing the application closes the limiters made here, and neither a given `limiter` nor `store`.
 * @throws SluiceError when it is registered, and when a route is, with the option, its value and what is expected
 * @example
 * await app.register(rateLimitPlugin, { limit: 100, window: '1m' })
 * app.post('/login', { config: { rateLimit: { limit: 5, window: '15m' } } }, login)
 * app.get('/health', { config: { rateLimit: false } }, health)
 */
export const rateLimitPlugin: FastifyPluginAsync<RateLimitPluginOptions> = fastifyPlugin(limitInstance, {
  fastify: '5.x',
  name: '@sluice/fastify',
})

async function limitInstance(app: FastifyInstance, given: RateLimitPluginOptions): Promise<void> {
  const { global = true, hook = 'onRequest', groups = {}, ...options } = given
  if (typeof global !== 'boolean') throw badOption('global', global, 'true or false')
  const stage = checkStage(hook)
  if (typeof groups !== 'object' || groups === null) {
    throw badOption('groups', groups, 'an object such as { login: { limit: 5, window: "15m" } }')
  }
  if (!global) {
    refuseUnknownOptions('rateLimitPlugin with `global: false`', given, [
      ...['global', 'hook', 'groups'],
      ...inheritable,
    ])
  }
  const limits = new PluginLimits(defaultsOf(options), stage)
  app.addHook('onClose', () => limits.close())
  for (const [name, group] of Object.entries(groups)) limits.addGroup(name, group)
  app.addHook(stage, globalHook(global ? limits.make(ownOptions(options)) : undefined))
  if (!Object.hasOwn(app, nearest)) decorate(app)
  ;(app as Limited)[nearest] = limits

  app.addHook('onRoute', function (this: FastifyInstance, route) {
    const own = route.config?.rateLimit
    if (own === undefined || own === false || (this as Limited)[nearest] !== limits) return
    route.config = { ...route.config, [read]: true } as typeof route.config
    const { enforce, stage } = limits.ofRoute(route, own)
    Object.assign(route, { [stage]: [route[stage] ?? [], enforce].flat() })
  })
}

const passed = Promise.resolve()

/** The hook that limits all requests, but for the routes that are out of the global limits. */
function globalHook(enforce: Enforce | undefined) {
  return function rateLimitHook(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const { config, method, url } = request.routeOptions
    const own = config?.rateLimit
    if (own !== undefined && own !== false && !(read in config)) {
      return Promise.reject(
        misused(
          `Route ${method} ${url} has \`config.rateLimit\`, which nobody has read, since the plugin was not loaded when the route was added. Expected \`await app.register(rateLimitPlugin, options)\` before it`,
        ),
      )
    }
    const exempt = own === false || own?.replace === true
    return enforce === undefined || exempt ? passed : enforce(request, reply)
  }
}

/** Adds `app.rateLimit()`, which must not be called once it is too late to pass its hook on. */
function decorate(app: FastifyInstance): void {
  let started = false
  app.addHook('onReady', async () => {
    started = true
  })
  app.decorate('rateLimit', (options: RateLimitOptions) => {
    if (started) throw madeInHandler('app.rateLimit()')
    return hookOf(((app as Limited)[nearest] as PluginLimits).make(options))
  })
}
