// One contestant in memory: decisions a second over 10,000 keys, the heap for a key and the longest pause at a million.
// Task: { name, keys, decisions }.
import { setImmediate as turn } from 'node:timers/promises'
import { contestants } from '../contestants/memory.mjs'
import statistics from '../statistics.cjs'

const { name, keys, decisions } = JSON.parse(process.argv[2])
const client = (i) => `ip:10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`
const options = { limit: 100_000, windowMs: 3_600_000, keys }
const open = contestants[name]

async function perSecond() {
  const { ask } = open(options)
  const many = Array.from({ length: 10_000 }, (_, i) => client(i))
  const runs = []
  for (let run = 0; run < 5; run++) {
    const start = performance.now()
    for (let i = 0; i < decisions; i++) await ask(many[(i * 7) % many.length])
    runs.push((decisions * 1000) / (performance.now() - start))
  }
  return statistics.median(runs)
}

function bytes() {
  globalThis.gc()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

/** Takes each key once; the event loop gets its turn after every hundred. */
async function fill() {
  const { ask, admits } = open(options)
  const times = new Float64Array(keys)
  await ask('warm-up')
  const before = bytes()
  for (let i = 0; i < keys; i++) {
    const key = client(i)
    const start = performance.now()
    await ask(key)
    times[i] = performance.now() - start
    if (i % 100 === 0) await turn()
  }
  const perKey = (bytes() - before) / keys
  // Also says that the keys are still there.
  if (!admits(await ask(client(0)))) throw new Error('denied a request within the limit')
  times.sort()
  return { bytesPerKey: perKey, longestMs: times[keys - 1], p9999Ms: times[Math.floor(keys * 0.9999)] }
}

console.log(JSON.stringify({ perSecond: await perSecond(), ...(await fill()) }))
process.exit()
