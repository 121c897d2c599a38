// What a contestant asks of Redis for clients that it keeps denying. Task: { name, url, ms }.
import { Redis } from 'ioredis'
import { contestants } from '../contestants/redis.mjs'

const { name, url, ms } = JSON.parse(process.argv[2])
const keys = Array.from({ length: 20 }, (_, i) => `ip:203.0.113.${i}`)

let sent = 0
const { sendCommand } = Redis.prototype
Redis.prototype.sendCommand = function (...args) {
  sent += 1
  return sendCommand.apply(this, args)
}

const { ask, close } = await contestants[name](url, { limit: 1, windowMs: 86_400_000 })
// The first request is admitted, and some contestants admit one that others count as the second.
for (let i = 0; i < 3; i++) await Promise.all(keys.map(ask))
sent = 0
let asked = 0
const start = performance.now()
const call = async () => {
  while (performance.now() < start + ms) {
    if (await ask(keys[asked++ % keys.length])) throw new Error('admitted a client beyond its limit')
    // Answers from memory leave the event loop no turn of its own.
    if (asked % 64 === 0) await new Promise(setImmediate)
  }
}
await Promise.all(Array.from({ length: 64 }, call))
const seconds = (performance.now() - start) / 1000
await close()
console.log(
  JSON.stringify({
    perSecond: asked / seconds,
    commandsPerRequest: sent / asked,
    commandsPerKeySecond: sent / keys.length / seconds,
  }),
)
