import { Module, type ModuleMetadata } from '@nestjs/common'
import { APP_GUARD } from '@nestjs/core'
import { MemoryStore } from '@sluice/core'
import { RateLimitGuard, RateLimitModule, type RateLimitModuleOptions, RateLimits } from '../src/index.js'
import { onExpress } from './platforms.js'

/** An application under test. */
export interface Started {
  readonly url: string
  readonly limits: RateLimits
  /** What a request of the path is answered with. */
  get(path: string, headers?: Record<string, string>): Promise<Response>
  /** The statuses of requests of the path, one after the other. */
  statuses(times: number, path: string): Promise<number[]>
  close(): Promise<void>
}

const started: { close(): Promise<void> }[] = []

afterEach(async () => {
  await Promise.all(started.splice(0).map((app) => app.close()))
})

/** Ends an application, or what was started beside it, with the test. */
export function closeAfterTest<T extends { close(): Promise<void> }>(app: T): T {
  started.push(app)
  return app
}

/** The module under test, whose limits are counted at one moment in one memory. */
export function rateLimitModule(options: object = {}): NonNullable<ModuleMetadata['imports']>[number] {
  const defaults = { store: new MemoryStore({ nowUs: () => 1e15 }), logger: { warn: () => {} } }
  return RateLimitModule.forRoot({ ...defaults, ...options } as RateLimitModuleOptions)
}

export const globalGuard = { provide: APP_GUARD, useClass: RateLimitGuard }

/** Starts an application until the end of the test. */
export async function start({ providers = [globalGuard], ...metadata }: ModuleMetadata): Promise<Started> {
  class AppModule {}
  Module({ providers, ...metadata })(AppModule)
  const app = closeAfterTest(await onExpress.create({ module: AppModule }))
  await app.listen(0, '127.0.0.1')
  const url = await app.getUrl()
  const get = (path: string, headers = {}) => fetch(url + path, { headers })
  return {
    url,
    limits: app.get(RateLimits),
    get,
    async statuses(times, path) {
      const answered: number[] = []
      for (let i = 0; i < times; i += 1) answered.push((await get(path)).status)
      return answered
    },
    close: () => app.close(),
  }
}
