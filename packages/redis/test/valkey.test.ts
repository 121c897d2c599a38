import { randomUUID } from 'node:crypto'
import { storeContract } from '@sluice/testing'
import { Redis } from 'ioredis'
import { RedisStore } from '../src/index.js'
import { limit, runProcesses } from './accuracy.js'
import { type RedisServer, startRedis } from './redis.js'

const { SLUICE_VALKEY: binary, SLUICE_VALKEY_MISSING: missing } = process.env

if (!binary) {
  test('a Valkey server is missing for a reason that is told', () => {
    if (!missing) {
      throw new Error(
        'Set SLUICE_VALKEY to a valkey-server, or SLUICE_VALKEY_MISSING to the reason why there is none.',
      )
    }
    console.warn(`NOT TESTED ON VALKEY: ${missing}`)
  })
} else {
  let server: RedisServer
  let client: Redis
  beforeAll(async () => {
    server = await startRedis({ binary })
    client = new Redis(server.url)
    expect(await client.info('server')).toContain('valkey_version:')
  })
  afterAll(async () => {
    client?.disconnect()
    await server?.stop()
  })

  storeContract('a RedisStore on Valkey', () => new RedisStore(client, { prefix: randomUUID() }), {
    clock: false,
  })

  test('on Valkey gcra admits exactly the limit of concurrent calls of several processes', async () => {
    expect(await runProcesses('gcra', { url: server.url })).toEqual({ admitted: limit, degraded: 0 })
  })

  test('on Valkey a store is ready, with nothing to warn of', async () => {
    const lines: string[] = []
    const store = new RedisStore(client, { logger: { warn: (line) => lines.push(line) } })
    await store.ready()
    await store.close()
    expect(lines).toEqual([])
  })
}
