// The figures of the README's decision matrix: memory, cost, bound and sustained share of each algorithm. With --write
// they go to docs/measurements.md and into the matrix.
import { fileURLToPath } from 'node:url'
import { algorithmNames } from '@sluice/core'
import { measureBounds } from './bounds.mjs'
import { measureRedisCpu } from './redis-cpu.mjs'
import { commit, replaceSection, report, runAlone, table, thousands, write } from './report.mjs'
import { bytesOf, limits } from './sections/redis-memory.mjs'
import { withRedis } from './servers.mjs'

/** What no measurement says. */
const words = {
  'fixed-window': [
    '2L',
    'the whole limit',
    'twice the limit across an edge',
    'quotas by calendar day or hour',
  ],
  'sliding-window-counter': [
    '2L - 1, near L on real traffic',
    'the whole limit',
    'smooth, by an estimate of the window before',
    'most APIs: the default',
  ],
  'sliding-window-log': ['L', 'the whole limit', 'exact', 'logins, payments: small limits that must hold'],
  'sliding-window-ring': [
    'L',
    'the whole limit',
    'strict, a little less than the limit',
    'large limits that must hold',
  ],
  'token-bucket': ['burst + L', '`burst`, any size', 'no windows', 'bursts beside a steady rate'],
  gcra: ['burst + L', '`burst`, any size', 'no windows', 'the same, in the least memory'],
  'leaky-bucket': [
    'departures W / L apart',
    'wait in a queue',
    'no windows',
    'feeding a slow service evenly',
  ],
}

const bounds = measureBounds()
const memory = {}
const cpu = {}
for (const algorithm of algorithmNames) {
  memory[algorithm] = {
    once: runAlone('process-memory.mjs', algorithm, 100_000, 1),
    full: runAlone('process-memory.mjs', algorithm, 10_000, 100),
  }
  cpu[algorithm] = runAlone('memory-cpu.mjs', algorithm)
}
const redisMemory = {}
const { version, redisCpu } = await withRedis(async (redis) => {
  for (const algorithm of algorithmNames) {
    redisMemory[algorithm] = []
    for (const limit of limits) redisMemory[algorithm].push((await bytesOf(redis, algorithm, limit)).above)
  }
  return { version: redis.version, redisCpu: await measureRedisCpu(redis.client) }
})

const times = (value, control) => `${(value / control).toFixed(1)}x`
const above = (bytes) => `${bytes < 0 ? '' : '+'}${thousands(bytes)}`

report('matrix', 'Memory, cost and bounds of the algorithms', version, [
  `**Memory** for one client, in bytes. Redis: \`MEMORY USAGE\` of the key of a limit that is used up, above that of \`SET key 1 PX\` on the same key. Process: the heap for one key of a \`MemoryStore\`, key included; 100,000 keys used once, and 10,000 whose limit of 100 is used up.`,
  table(
    [
      'algorithm',
      ...limits.map((limit) => `Redis, limit ${thousands(limit)}`),
      'process, used once',
      'process, limit of 100 used up',
    ],
    algorithmNames.map((name) => [
      `\`${name}\``,
      ...redisMemory[name].map(above),
      thousands(memory[name].once),
      thousands(memory[name].full),
    ]),
  ),
  `**Cost** of one admitted decision over 10,000 keys. Redis, asked from 64 connections with one request in flight on each: microseconds of the script in \`INFO commandstats\` and of the whole server, its sockets included, in \`INFO cpu\`; control: \`INCR\` on as many keys, ${redisCpu.incr.command.toFixed(2)} and ${redisCpu.incr.server.toFixed(1)} us. Process: CPU of \`limiter.consume\`; control: counting in a \`Map\` behind an async function, in the same process. The least of several rounds each.`,
  table(
    ['algorithm', 'script, us', 'x INCR', 'server, us', 'x INCR', 'process, ns', 'x control'],
    algorithmNames.map((name) => [
      `\`${name}\``,
      redisCpu[name].command.toFixed(1),
      times(redisCpu[name].command, redisCpu.incr.command),
      redisCpu[name].server.toFixed(1),
      times(redisCpu[name].server, redisCpu.incr.server),
      thousands(cpu[name].decision),
      times(cpu[name].decision, cpu[name].control),
    ]),
  ),
  '**Bound**: the most of a limit of 100 (burst 100, queue 99) that a search found admitted in one window; of `leaky-bucket` accepted, to depart later. **Sustained**: the share of the limit that a client gets who asks ten times as often, over 50 windows.',
  table(
    ['algorithm', 'most in a window', 'sustained'],
    algorithmNames.map((name) => [`\`${name}\``, bounds[name].most, bounds[name].sustained.toFixed(3)]),
  ),
])

if (write) {
  const [small, large] = [0, limits.length - 1]
  const redisBytes = (name) => {
    const [least, most] = [redisMemory[name][small], redisMemory[name][large]]
    return least === most ? above(least) : `${above(least)} to ${above(most)}`
  }
  const processBytes = (name) => {
    const { once, full } = memory[name]
    return full < 2 * once ? thousands(once) : `${thousands(once)} to ${thousands(full)}`
  }
  const matrix = table(
    [
      '`algorithm`',
      'most in a window W, limit L',
      'bursts',
      'at the edges',
      'sustained',
      'bytes per client: Redis, process',
      'cost: Redis, process',
      'best for',
    ],
    algorithmNames.map((name) => {
      const [bound, bursts, edges, best] = words[name]
      return [
        `\`${name}\``,
        bound,
        bursts,
        edges,
        `${(100 * bounds[name].sustained).toFixed(0)} %`,
        `${redisBytes(name)}, ${processBytes(name)}`,
        `${times(redisCpu[name].server, redisCpu.incr.server)}, ${(cpu[name].decision / 1000).toFixed(1)} us`,
        best,
      ]
    }),
  ).replaceAll('---:', '---')
  const source = `Measured by \`npm run bench:matrix\` at commit ${commit()}: [docs/measurements.md](docs/measurements.md). Redis bytes are those above \`SET key 1 PX\`, from limit ${thousands(limits[small])} to ${thousands(limits[large])}; Redis cost is the server's CPU for one decision against that for one \`INCR\`, each asked for alone.`
  replaceSection(fileURLToPath(new URL('../README.md', import.meta.url)), 'matrix', `${matrix}\n\n${source}`)
}
