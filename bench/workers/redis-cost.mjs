// What a decision of one contestant costs Redis, and sends to it, by the way of asking.
// Task: { name, url, warmUpMs, ms }.
import { Redis } from 'ioredis'
import { contestants } from '../contestants/redis.mjs'
import { serverCounts } from '../server-counts.mjs'

const { name, url, warmUpMs, ms } = JSON.parse(process.argv[2])
const limit = name === 'sliding-window-log' ? 100_000 : 100_000_000
const keys = Array.from({ length: 10_000 }, (_, i) => `ip:10.0.${i >> 8}.${i & 255}`)

let sent = 0
const { sendCommand } = Redis.prototype
Redis.prototype.sendCommand = function (...args) {
  sent += 1
  return sendCommand.apply(this, args)
}

const server = new Redis(url)

/** `askers` in turn by `callers` that each ask again when they were answered. */
async function run(askers, callers, forMs) {
  let asked = 0
  const end = performance.now() + forMs
  const call = async (_, i) => {
    while (performance.now() < end) await askers[i % askers.length](keys[(asked++ * 7) % keys.length])
  }
  await Promise.all(Array.from({ length: callers }, call))
  return asked
}

async function measure(askers, callers) {
  // A server is asked in other portions while its client is still slow.
  await run(askers, callers, warmUpMs)
  const before = await serverCounts(server)
  sent = 0
  const decisions = await run(askers, callers, ms)
  const commands = sent
  const after = await serverCounts(server)
  const per = (what) => (after[what] - before[what]) / decisions
  return {
    cpuUs: per('cpuUs'),
    sent: commands / decisions,
    executed: per('executed'),
    bytesIn: per('bytesIn'),
    bytesOut: per('bytesOut'),
  }
}

const open = () => contestants[name](url, { limit, windowMs: 60_000 })
const figures = {}
const keep = (way, measured) => {
  for (const what in measured) figures[`${way}/${what}`] = measured[what]
}
const one = await open()
for (const callers of [64, 512]) keep(`${callers} callers`, await measure([one.ask], callers))
await one.close()
const each = await Promise.all(Array.from({ length: 64 }, open))
keep(
  '64 connections',
  await measure(
    each.map(({ ask }) => ask),
    each.length,
  ),
)
for (const { close } of each) await close()
server.disconnect()
console.log(JSON.stringify(figures))
