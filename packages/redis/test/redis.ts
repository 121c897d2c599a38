import { randomUUID } from 'node:crypto'
import { Redis, type RedisOptions } from 'ioredis'

export { type RedisServer, startRedis } from '../../../scripts/servers/redis.cjs'

/** A client of the server for functional tests, whose keys all carry a random prefix. */
export function functionalClient(options: RedisOptions = {}): Redis {
  const url = process.env.REDIS_URL
  if (!url) throw new Error('Set REDIS_URL, or run `npm test`, which starts a server.')
  return new Redis(url, { keyPrefix: `test:${randomUUID()}:`, ...options })
}
