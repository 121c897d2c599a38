import { Redis } from 'ioredis'
import redis from '../scripts/servers/redis.cjs'

/** Runs a measurement on a private Redis, with a client of it and the name of its version. */
export async function withRedis(measure) {
  const server = await redis.startRedis()
  const client = new Redis(server.url)
  try {
    const info = await client.info('server')
    const valkey = /valkey_version:(\S+)/.exec(info)?.[1]
    const version = valkey ? `Valkey ${valkey}` : `Redis ${/redis_version:(\S+)/.exec(info)[1]}`
    return await measure({ client, version, url: server.url })
  } finally {
    client.disconnect()
    await server.stop()
  }
}
