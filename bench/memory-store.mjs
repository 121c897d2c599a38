// The MemoryStore beside its controls: decisions a second, heap for a key and longest pause at a million keys.
// `node bench/memory-store.mjs` prints Markdown, after `npm run build`; `--core <file>` measures another build.
import { execFileSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { policyOf } from './policies.mjs'
import { noise, table, thousands } from './report.mjs'
import statistics from './statistics.cjs'

const algorithms = [
  'fixed-window',
  'gcra',
  'sliding-window-counter',
  'token-bucket',
  'leaky-bucket',
  'sliding-window-ring',
  'sliding-window-log',
]
const client = (i) => `ip:203.${i >> 16}.${(i >> 8) & 255}.${i & 255}`

/** What is timed for speed: a name and what it does for a key. */
function contestants({ Limiter, MemoryStore }, algorithm) {
  const require = createRequire(import.meta.url)
  const limiter = new Limiter({ store: new MemoryStore(), ...policyOf(algorithm, 100_000, '1h') })
  const counts = new Map()
  const control = {
    async consume({ key }) {
      counts.set(key, (counts.get(key) ?? 0) + 1)
    },
  }
  const list = {
    control: (key) => control.consume({ key }),
    sluice: (key) => limiter.consume({ key }),
  }
  try {
    const { RateLimiterMemory } = require('rate-limiter-flexible')
    const peer = new RateLimiterMemory({ points: 1e9, duration: 3600 })
    list['rate-limiter-flexible'] = (key) => peer.consume(key)
  } catch {}
  try {
    const { MemoryStore: PeerStore } = require('express-rate-limit')
    const peer = new PeerStore()
    peer.init({ windowMs: 3_600_000 })
    list['express-rate-limit'] = (key) => peer.increment(key)
  } catch {}
  return list
}

/** Nanoseconds of CPU for a decision of each contestant, over 10,000 keys, in turn: the medians of some rounds. */
export async function speed(core, algorithm, { rounds = 9, decisions = 100_000 } = {}) {
  const list = contestants(core, algorithm)
  const keys = Array.from({ length: 10_000 }, (_, i) => client(i))
  const runs = Object.fromEntries(Object.keys(list).map((name) => [name, []]))
  // A loop of its own for each, so that none is compiled for the calls of another.
  const loops = Object.keys(list).map((name) => [
    name,
    new Function(
      'ask',
      'keys',
      'count',
      'return (async () => { for (let i = 0; i < count; i++) await ask(keys[(i * 7) % keys.length]) })()',
    ),
  ])
  for (let round = 0; round < rounds; round++) {
    for (const [name, loop] of loops) {
      const start = process.cpuUsage()
      await loop(list[name], keys, decisions)
      const { user, system } = process.cpuUsage(start)
      runs[name].push(((user + system) * 1000) / decisions)
    }
  }
  return Object.fromEntries(Object.entries(runs).map(([name, each]) => [name, statistics.median(each)]))
}

function bytes() {
  globalThis.gc()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

/** Bytes for a key when `keys` of them came once, and after as many more pushed them out. Needs --expose-gc. */
export async function heap({ Limiter, MemoryStore }, algorithm, keys = 1_000_000) {
  const store = new MemoryStore({ maxKeys: keys })
  const limiter = new Limiter({ store, ...policyOf(algorithm, 100, '1m') })
  const before = bytes()
  for (let i = 0; i < keys; i++) await limiter.consume({ key: client(i) })
  const filled = (bytes() - before) / keys
  for (let i = keys; i < 2 * keys; i++) await limiter.consume({ key: client(i) })
  const churned = (bytes() - before) / keys
  if (store.size !== keys) throw new Error(`holds ${store.size} keys`)
  return { filled, churned }
}

/**
 * The longest that 100 decisions took while a store was filled and then churned, in milliseconds of CPU: of each hundred
 * the fastest of three passes, since other work of the machine, the compiler and the garbage collector does not come back
 * at the same place. Of the collector's own pauses see `--trace-gc`.
 */
export async function pause({ Limiter, MemoryStore }, algorithm, keys = 1_000_000) {
  const batch = 100
  const best = new Float64Array((2 * keys) / batch).fill(Number.POSITIVE_INFINITY)
  for (let pass = 0; pass < 3; pass++) {
    const limiter = new Limiter({
      store: new MemoryStore({ maxKeys: keys }),
      ...policyOf(algorithm, 100, '1m'),
    })
    for (let i = 0; i < best.length; i++) {
      const start = process.cpuUsage()
      for (let j = 0; j < batch; j++) await limiter.consume({ key: client(i * batch + j) })
      const { user, system } = process.cpuUsage(start)
      best[i] = Math.min(best[i], (user + system) / 1000)
    }
    await limiter.close()
  }
  return { longestMs: best.reduce((longest, one) => Math.max(longest, one), 0) }
}

const measures = { speed, heap, pause }

/** Measures in a process of its own. */
function alone(measure, algorithm, core, ...args) {
  const command = [
    '--expose-gc',
    fileURLToPath(import.meta.url),
    '--measure',
    measure,
    algorithm,
    core,
    ...args,
  ]
  return JSON.parse(execFileSync(process.execPath, command, { encoding: 'utf8' }))
}

/** The table of all algorithms. */
export function memoryStoreTable(core = '@sluice/core', keys = 1_000_000) {
  const rows = algorithms.map((algorithm) => {
    const { control, sluice, ...peers } = alone('speed', algorithm, core)
    const large = algorithm === 'sliding-window-log' || algorithm === 'sliding-window-ring' ? keys / 10 : keys
    const { filled, churned } = alone('heap', algorithm, core, String(large))
    const { longestMs } = alone('pause', algorithm, core, String(large))
    return [
      algorithm,
      thousands(1e9 / sluice),
      `${(control / sluice).toFixed(2)}x`,
      ...Object.values(peers).map((peer) => `${(peer / sluice).toFixed(2)}x`),
      `${Math.round(filled)} B`,
      `${Math.round(churned)} B`,
      `${longestMs.toFixed(1)} ms`,
    ]
  })
  const head = [
    'algorithm',
    'decisions/s',
    'of a bare Map',
    'of rate-limiter-flexible',
    'of express-rate-limit',
  ]
  return table([...head.slice(0, rows[0].length - 3), 'heap for a key', 'after churn', 'longest 100'], rows)
}

async function main() {
  const [flag, measure, algorithm, core, keys] = process.argv.slice(2)
  if (flag === '--measure') {
    const figures = await measures[measure](await import(core), algorithm, keys && Number(keys))
    console.log(JSON.stringify(figures))
    process.exit()
  }
  const at = process.argv.indexOf('--core')
  console.log(memoryStoreTable(at > 0 ? process.argv[at + 1] : undefined))
  console.log(`\nNoise: ${noise()}.`)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main()
