// How often a node that reserves asks Redis, under constant traffic on one key.
// Task: { name, url, settleMs, ms }.
import { setTimeout } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { contestants } from '../contestants/redis.mjs'

const { name, url, settleMs, ms } = JSON.parse(process.argv[2])
const limit = 1_000_000
const key = 'ip:203.0.113.7'
const mostDecisions = limit / 3

let sent = 0
const { sendCommand } = Redis.prototype
Redis.prototype.sendCommand = function (...args) {
  sent += 1
  return sendCommand.apply(this, args)
}

const { ask, close } = await contestants[name](url, { limit, windowMs: 60_000 })

async function run(forMs) {
  let asked = 0
  const end = performance.now() + forMs
  const call = async () => {
    while (performance.now() < end && asked < mostDecisions) {
      asked += 1
      if (!(await ask(key))) throw new Error('denied a request within the limit')
      if (asked % 64 === 0) await new Promise(setImmediate)
    }
  }
  await Promise.all(Array.from({ length: 64 }, call))
  return asked
}

// A process holds nothing until the others had the time to learn of it; then a lease grows with the rate that was seen.
for (const end = performance.now() + settleMs; performance.now() < end; await setTimeout(100)) await ask(key)
await run(ms / 2)
sent = 0
const start = performance.now()
const asked = await run(ms)
const seconds = (performance.now() - start) / 1000
const commands = sent
await close()
console.log(JSON.stringify({ perSecond: asked / seconds, commandsPerRequest: commands / asked }))
