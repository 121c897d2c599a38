// Bytes of this process for one client in a MemoryStore, its key included. Arguments: algorithm, keys, requests of each.
import { Limiter, MemoryStore } from '@sluice/core'
import { policyOf } from './policies.mjs'

const [algorithm, keys, requests] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])]

function bytes() {
  globalThis.gc()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

const limiter = new Limiter({
  store: new MemoryStore({ maxKeys: 100_000 }),
  name: 'api',
  ...policyOf(algorithm, 100),
})
await limiter.consume({ key: 'warm-up' })
const before = bytes()
for (let i = 0; i < keys; i++) {
  const key = `ip:10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`
  for (let request = 0; request < requests; request++) await limiter.consume({ key })
}
console.log(JSON.stringify((bytes() - before) / keys))
await limiter.close()
