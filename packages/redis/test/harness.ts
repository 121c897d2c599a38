import {
  type Check,
  Limiter,
  type LimiterOptions,
  type Policy,
  type ResolvedPolicy,
  resolvePolicy,
  type Store,
  type Verdict,
} from '@sluice/core'
import { type Cluster, Redis, type RedisOptions } from 'ioredis'
import { RedisStore, type RedisStoreOptions } from '../src/index.js'
import { type RedisServer, startRedis } from './redis.js'

const closing: (() => Promise<unknown> | unknown)[] = []

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** Does something once the test has ended, last one first. */
export function afterwards(close: () => Promise<unknown> | unknown): void {
  closing.push(close)
}

/** A store on a client, both closed after the test. */
export function open(client: Redis | Cluster, options?: RedisStoreOptions): RedisStore {
  afterwards(() => client.disconnect())
  client.on('error', () => {})
  const store = new RedisStore(client, options)
  afterwards(() => store.close())
  return store
}

/** A server of the test's own, stopped after it. */
export async function privateServer(options?: Parameters<typeof startRedis>[0]): Promise<RedisServer> {
  const server = await startRedis(options)
  afterwards(() => server.stop())
  return server
}

export function clientOf({ url }: { readonly url: string }, options: RedisOptions = {}): Redis {
  return new Redis(url, { disconnectTimeout: 50, ...options })
}

/** A client for commands of the test itself, closed after it. */
export function adminOf(server: { readonly url: string }): Redis {
  const admin = clientOf(server)
  admin.on('error', () => {})
  afterwards(() => admin.disconnect())
  return admin
}

/** A limiter of 3 an hour which asks the store each time, refuses when it fails, and logs nothing. */
export function limiter(store: Store, options: Partial<LimiterOptions & Policy> = {}): Limiter {
  return new Limiter({
    store,
    name: 'test',
    limit: 3,
    window: '1h',
    timeoutMs: 5000,
    onStoreError: 'deny',
    denyStaleMs: 0,
    logger: { warn: () => {} },
    ...options,
  })
}

/** A policy of which nothing comes back during a test. */
export function policyOf(limit: number, options: Partial<Policy> = {}): ResolvedPolicy {
  return resolvePolicy({ algorithm: 'fixed-window', limit, window: '400d', ...options })
}

export function check(key: string, policy: ResolvedPolicy, units = 1): Check {
  return { key, policy, least: units, most: units }
}

/** Charges one check, or tells why not. */
export async function tryOne(store: Store, one: Check, timeoutMs = 1000): Promise<Verdict | string> {
  try {
    return (await store.consume([one], { timeoutMs }))[0] as Verdict
  } catch (error) {
    return (error as Error).message
  }
}

/** Asks again until the answer is as wanted; the test's own time limit ends it. */
export async function eventually<T>(ask: () => Promise<T>, wanted: (answer: T) => boolean): Promise<T> {
  for (;;) {
    const answer = await ask()
    if (wanted(answer)) return answer
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
