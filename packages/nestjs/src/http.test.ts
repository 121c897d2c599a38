import type { RedisStore } from '@sluice/redis'
import { adapterContract, type MakeStore } from '@sluice/testing'
import { redisStore, timedStore } from '../../redis/test/contract-stores.js'
import { onExpress, onFastify } from '../test/platforms.js'
import { makeServer } from '../test/site.js'

/** Connected, since requests that wait for a connection need not stay in their order. */
const readyStore: MakeStore = async (nowUs) => {
  const store = (await redisStore(nowUs)) as RedisStore
  await store.ready()
  return store
}

adapterContract('NestJS on Express', makeServer(onExpress))
adapterContract('NestJS on Fastify', makeServer(onFastify), { http2: true })
adapterContract('NestJS on Express, on a clock in Redis', makeServer(onExpress), { makeStore: timedStore })
adapterContract('NestJS on Fastify, on a RedisStore', makeServer(onFastify), {
  makeStore: readyStore,
  clock: false,
  http2: true,
})
