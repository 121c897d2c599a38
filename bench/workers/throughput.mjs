// Decisions a second of one contestant on Redis, by callers and keys, and how long one takes.
// Task: { name, url, warmUpMs, ms }.
import { contestants } from '../contestants/redis.mjs'
import statistics from '../statistics.cjs'

const { name, url, warmUpMs, ms } = JSON.parse(process.argv[2])
/** Never used up; the log cannot have more than 100,000. */
const limit = name === 'sliding-window-log' ? 100_000 : 100_000_000
const mostDecisions = 90_000
const client = (i) => `ip:10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`
const many = Array.from({ length: 10_000 }, (_, i) => client(i))

/** Each caller asks again when it was answered. */
async function run(ask, keyOf, callers, forMs) {
  const times = []
  let asked = 0
  const start = performance.now()
  const end = start + forMs
  const call = async () => {
    while (asked < mostDecisions) {
      const sent = performance.now()
      if (sent >= end) return
      const allowed = await ask(keyOf(asked++))
      if (!allowed) throw new Error('denied a request within the limit')
      times.push(performance.now() - sent)
    }
  }
  await Promise.all(Array.from({ length: callers }, call))
  return { perSecond: (times.length * 1000) / (performance.now() - start), times }
}

const { ask, close } = await contestants[name](url, { limit, windowMs: 60_000 })
const figures = {}
const manyKeys = (i) => many[(i * 7) % many.length]
// Code is compiled after some ten thousand calls, and a process counts only once others had the time to see it.
await run(ask, manyKeys, 64, warmUpMs)
await run(ask, manyKeys, 512, warmUpMs / 2)
let fresh = many.length
for (const callers of [1, 64, 512]) {
  const hot = client(fresh++)
  for (const [keys, keyOf] of [
    ['many', manyKeys],
    ['hot', () => hot],
  ]) {
    const { perSecond, times } = await run(ask, keyOf, callers, ms)
    const at = `${keys}/${callers}`
    figures[`${at}/perSecond`] = perSecond
    figures[`${at}/p50`] = statistics.quantile(times, 0.5)
    figures[`${at}/p99`] = statistics.quantile(times, 0.99)
  }
}
await close()
console.log(JSON.stringify(figures))
