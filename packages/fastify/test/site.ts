import fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify'
import {
  MemoryStore,
  type RateLimitPluginOptions,
  type RouteRateLimit,
  rateLimitPlugin,
} from '../src/index.js'

/** An application for each test, and a store on a clock that stands still. */
export let app: FastifyInstance
export let store: MemoryStore

beforeEach(() => {
  newApp()
  store = new MemoryStore({ nowUs: () => 1.8e15 })
})
afterEach(() => app.close())

/** Puts another application in place of the first. */
export function newApp(options?: FastifyServerOptions): void {
  app = fastify(options)
}

export const window = { algorithm: 'fixed-window', window: '1m' } as const

/** A limit without a store. */
export const limit = (limit: number) => ({ ...window, limit })

/** A plugin's options: a limit in the store. */
export const limited = (limit: number, options: RateLimitPluginOptions = {}): RateLimitPluginOptions => ({
  store,
  ...window,
  limit,
  ...options,
})

/** Registers the plugin, with the store. */
export async function plugin(options: RateLimitPluginOptions = { global: false }): Promise<void> {
  await app.register(rateLimitPlugin, { store, ...options })
}

/** Adds a route with limits of its own, which answers with the names of the policies that it met. */
export function get(url: string, rateLimit: RouteRateLimit | false, instance = app): void {
  instance.get(url, { config: { rateLimit } }, async (request) =>
    request.rateLimit?.policies.map(({ name }) => name),
  )
}

/** Routes that answer with their own path. */
export function routes(instance: FastifyInstance, ...paths: string[]): void {
  for (const path of paths) instance.get(path, async () => path)
}
