import { measureAccuracy } from './accuracy.mjs'
import { measureHttp } from './http.mjs'
import { measureInstructions } from './instructions.mjs'
import { measureMemoryStore } from './memory-store.mjs'
import { measureDenials, measureRedisCost, measureReservation } from './redis-cost.mjs'
import { measureRedisMemory } from './redis-memory.mjs'
import { measureThroughput } from './throughput.mjs'

/** By letter: what each section measures. */
export const sections = {
  a: async (redis, options, log) => ({ throughput: await measureThroughput(redis, options, log) }),
  b: async (redis, options, log) => ({
    cost: await measureRedisCost(redis, options, log),
    denials: await measureDenials(redis, options, log),
    reservation: await measureReservation(redis, options, log),
    instructions: await measureInstructions(options, log),
  }),
  c: async (redis, options, log) => ({ memory: await measureRedisMemory(redis, options, log) }),
  d: async (_redis, options, log) => ({ memory: await measureMemoryStore(options, log) }),
  e: measureHttp,
  f: async (redis, options, log) => ({ accuracy: await measureAccuracy(redis, options, log) }),
}
