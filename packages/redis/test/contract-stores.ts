import { randomUUID } from 'node:crypto'
import type { MakeStore } from '@sluice/testing'
import { RedisStore } from '../src/index.js'
import { functionalClient } from './redis.js'
import { TimedStore } from './timed-store.js'

const client = functionalClient({ keyPrefix: '' })
afterAll(() => client.quit())

/** The script by the clock of a test, under a prefix of its own. */
export const timedStore: MakeStore = (nowUs) => new TimedStore(client, `test:${randomUUID()}:`, nowUs)

/** A store as users make it, by the server's clock. */
export const redisStore: MakeStore = () => new RedisStore(client, { prefix: `test:${randomUUID()}` })
