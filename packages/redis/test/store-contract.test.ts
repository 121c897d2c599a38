import { randomUUID } from 'node:crypto'
import { type ClockUs, MemoryStore } from '@sluice/core'
import { parity, storeContract } from '@sluice/testing'
import { RedisStore } from '../src/index.js'
import { functionalClient } from './redis.js'
import { TimedStore } from './timed-store.js'

const client = functionalClient({ keyPrefix: '' })
afterAll(() => client.quit())

const timed = (nowUs: ClockUs): TimedStore => new TimedStore(client, `test:${randomUUID()}:`, nowUs)

storeContract('a RedisStore', () => new RedisStore(client, { prefix: `test:${randomUUID()}` }), {
  clock: false,
})
storeContract('the script', timed)
parity('the script', (nowUs) => [new MemoryStore({ nowUs }), timed(nowUs)], { clockGoesBack: true })
