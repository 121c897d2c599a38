// CPU of one decision in memory, in nanoseconds, beside a control: counting in a Map behind an async function.
// Argument: algorithm.
import { Limiter, MemoryStore } from '@sluice/core'
import { policyOf } from './policies.mjs'

const [algorithm] = process.argv.slice(2)
const decisions = 200_000
const rounds = 7
const keys = Array.from({ length: 10_000 }, (_, i) => `ip:10.0.${i >> 8}.${i & 255}`)

const limiter = new Limiter({ store: new MemoryStore(), name: 'api', ...policyOf(algorithm, 100_000) })
const counts = new Map()
const control = {
  async consume({ key }) {
    counts.set(key, (counts.get(key) ?? 0) + 1)
  },
}

async function nanoseconds({ consume }, self) {
  const start = process.cpuUsage()
  for (let i = 0; i < decisions; i++) await consume.call(self, { key: keys[(i * 7) % keys.length] })
  const { user, system } = process.cpuUsage(start)
  return ((user + system) * 1000) / decisions
}

const times = { decision: [], control: [] }
for (let round = 0; round < rounds; round++) {
  times.control.push(await nanoseconds(control, control))
  times.decision.push(await nanoseconds(limiter, limiter))
}
console.log(JSON.stringify({ decision: Math.min(...times.decision), control: Math.min(...times.control) }))
await limiter.close()
