// What the suite has to show: each bar with its floor, its aim, and how to read it from the results.
const { ratioOf } = require('./statistics.cjs')

/** @typedef {import('./statistics.cjs').Figure} Figure */
/** @typedef {{ name: string, kind: string, figures?: Record<string, Figure>, error?: string }} Row */
/** @typedef {Record<string, any>} Sections what each section measured, by its letter */
/**
 * @typedef {object} Bar
 * @property {string} section
 * @property {string} title
 * @property {'lower' | 'higher' | 'equal'} better
 * @property {number} floor
 * @property {number} aim
 * @property {(sections: Sections) => Figure} of throws when a contestant failed
 */

const constantSize = [
  'fixed-window',
  'sliding-window-counter',
  'sliding-window-ring',
  'token-bucket',
  'gcra',
  'leaky-bucket',
]
const burstLimit = 1000

/** Thrown where a run left out what a bar compares. */
class NotMeasured extends Error {}

/** @param {Row[]} rows @param {string} name @param {string} what */
function figure(rows, name, what) {
  const row = rows.find((one) => one.name === name)
  if (!row) throw new NotMeasured(`${name} was not measured`)
  if (!row.figures) throw new Error(`${name}: ${row.error}`)
  return /** @type {Figure} */ (row.figures[what])
}

/** @param {Row[]} rows @param {string} what */
function bestPeer(rows, what) {
  const peers = rows.filter(({ kind, figures }) => kind === 'peer' && figures)
  const figures = peers.map(({ name }) => figure(rows, name, what))
  if (figures.length === 0) throw new Error('no peer was measured')
  return figures.reduce((best, one) => (one.value > best.value ? one : best))
}

/** @type {Bar[]} */
const throughput = constantSize.flatMap((name) => {
  const ring = name === 'sliding-window-ring'
  const bar = (
    /** @type {number} */ callers,
    /** @type {string} */ control,
    /** @type {number} */ floor,
    /** @type {number} */ aim,
  ) => ({
    section: 'a',
    title: `${name}: decisions/s of ${callers === 1 ? 'one caller' : `${callers} callers`}, by ${control}`,
    better: /** @type {const} */ ('higher'),
    floor,
    aim,
    of: (/** @type {Sections} */ { a }) =>
      ratioOf(
        figure(a.throughput, name, `many/${callers}/perSecond`),
        figure(a.throughput, control, `many/${callers}/perSecond`),
      ),
  })
  const abovePeers = [64, 512].map((callers) => ({
    section: 'a',
    title: `${name}: decisions/s of ${callers} callers, by the best peer`,
    better: /** @type {const} */ ('higher'),
    floor: 1,
    aim: 1,
    of: (/** @type {Sections} */ { a }) =>
      ratioOf(
        figure(a.throughput, name, `many/${callers}/perSecond`),
        bestPeer(a.throughput, `many/${callers}/perSecond`),
      ),
  }))
  return [
    bar(1, 'EVALSHA of a trivial script', 0.6, 0.75),
    bar(64, 'INCR', ring ? 1 : 1.3, ring ? 1 : 1.8),
    bar(512, 'INCR', ring ? 1 : 1.6, ring ? 1 : 2.2),
    ...abovePeers,
  ]
})

/** @param {string} title @param {string} way @param {number} floor @param {number} aim @returns {Bar[]} */
const cpuBars = (title, way, floor, aim) =>
  constantSize.map((name) => ({
    section: 'b',
    title: `${name}: Redis CPU ${title}, by INCR`,
    better: 'lower',
    floor,
    aim,
    of: ({ b }) =>
      ratioOf(figure(b.cost, name, `${way}/cpuUs`), figure(b.cost, 'INCR', '64 connections/cpuUs')),
  }))

/** @param {string} title @param {string} way @param {number} floor @param {number} aim @returns {Bar} */
const threePolicies = (title, way, floor, aim) => ({
  section: 'b',
  title: `three policies: Redis CPU ${title}, by one policy`,
  better: 'lower',
  floor,
  aim,
  of: ({ b }) =>
    ratioOf(figure(b.cost, 'gcra, three policies', `${way}/cpuUs`), figure(b.cost, 'gcra', `${way}/cpuUs`)),
})

/** @type {Bar[]} */
const redisCost = [
  ...cpuBars('alone', '64 connections', 1.8, 1.5),
  ...cpuBars('at 64 callers', '64 callers', 0.6, 0.45),
  ...cpuBars('at 512 callers', '512 callers', 0.6, 0.45),
  threePolicies('alone', '64 connections', 2, 1.7),
  threePolicies('at 64 callers', '64 callers', 3.2, 2.7),
  ...[50, 500].map((max) => ({
    section: 'b',
    title: `reservation of ${max}: Redis commands for a request`,
    better: /** @type {const} */ ('lower'),
    floor: 1.1 / max,
    aim: 1 / max,
    of: (/** @type {Sections} */ { b }) =>
      figure(b.reservation, `gcra, reservation of ${max}`, 'commandsPerRequest'),
  })),
  {
    section: 'b',
    title: 'deny cache: Redis commands for a denied key and second',
    better: 'lower',
    floor: 1,
    aim: 1,
    of: ({ b }) => figure(b.denials, 'gcra, deny cache', 'commandsPerKeySecond'),
  },
]

/** @type {Bar[]} */
const redisMemory = [
  ...constantSize.map((name) => {
    const [floor, aim] = { 'fixed-window': [16, 16], gcra: [32, 16], 'sliding-window-ring': [176, 176] }[
      name
    ] ?? [32, 32]
    return {
      section: 'c',
      title: `${name}: bytes in Redis above SET key 1 PX`,
      better: /** @type {const} */ ('lower'),
      floor: /** @type {number} */ (floor),
      aim: /** @type {number} */ (aim),
      of: (/** @type {Sections} */ { c }) => figure(c.memory, name, '10000/above'),
    }
  }),
  {
    section: 'c',
    title: 'sliding-window-log: bytes in Redis for an entry, of 10,000',
    better: 'lower',
    floor: 13,
    aim: 13,
    of: ({ c }) =>
      ratioOf(figure(c.memory, 'sliding-window-log', '10000/above'), { value: 10_000, noise: 0 }),
  },
]

/** @type {Bar[]} */
const memoryStore = constantSize.flatMap((name) => [
  {
    section: 'd',
    title: `${name}, store alone: decisions/s in memory, by the best peer`,
    better: 'higher',
    floor: 1,
    aim: 1,
    of: ({ d }) =>
      ratioOf(figure(d.memory, `${name}, store alone`, 'perSecond'), bestPeer(d.memory, 'perSecond')),
  },
  {
    section: 'd',
    title: `${name}, store alone: decisions/s in memory, by a count in a Map`,
    better: 'higher',
    floor: 0.3,
    aim: 0.3,
    of: ({ d }) =>
      ratioOf(
        figure(d.memory, `${name}, store alone`, 'perSecond'),
        figure(d.memory, 'count in a Map', 'perSecond'),
      ),
  },
  {
    section: 'd',
    title: `${name}: bytes of heap for a key`,
    better: 'lower',
    floor: name === 'fixed-window' || name === 'gcra' ? 150 : 200,
    aim: name === 'fixed-window' || name === 'gcra' ? 150 : 200,
    of: ({ d }) => figure(d.memory, name, 'bytesPerKey'),
  },
  {
    section: 'd',
    title: `${name}: longest pause in ms`,
    better: 'lower',
    floor: 5,
    aim: 5,
    of: ({ d }) => {
      const { value, noise } = figure(d.memory, name, 'longestMs')
      // The machine pauses a program that does nothing, too.
      const machine = figure(d.memory, 'empty function', 'longestMs')
      return { value, noise: Math.hypot(noise, machine.value / value) }
    },
  },
])

const overHttp = /** @type {const} */ ([
  ['express', 'memory', 0.9, 0.95],
  ['express', 'reservation', 0.9, 0.95],
  ['express', 'strict Redis', 0.85, 0.92],
  ['koa', 'memory', 0.8, 0.88],
  ['koa', 'reservation', 0.8, 0.88],
  ['koa', 'strict Redis', 0.72, 0.8],
  ['fastify', 'memory', 0.68, 0.75],
  ['fastify', 'reservation', 0.68, 0.75],
  ['fastify', 'strict Redis', 0.62, 0.7],
])

/** @type {Bar[]} */
const http = [
  ...overHttp.map(([framework, mode, floor, aim]) => ({
    section: 'e',
    title: `${framework}, ${mode}: requests/s, by the bare server`,
    better: /** @type {const} */ ('higher'),
    floor,
    aim,
    of: (/** @type {Sections} */ { e }) => figure(e[framework], mode, 'normal/ratio'),
  })),
  {
    section: 'e',
    title: 'express, deny cache: requests/s under attack, by a constant 429',
    better: 'higher',
    floor: 0.95,
    aim: 0.95,
    of: ({ e }) => figure(e.express, 'deny cache', 'attack/ratio'),
  },
  {
    section: 'e',
    title: 'express, strict Redis: requests for a call of the script',
    better: 'higher',
    floor: 8,
    aim: 8,
    of: ({ e }) => figure(e.express, 'strict Redis', 'normal/perScript'),
  },
  ...['express', 'koa', 'fastify'].map((framework) => ({
    section: 'e',
    title: `${framework}, strict Redis: ms added to p99 at half load`,
    better: /** @type {const} */ ('lower'),
    floor: 2,
    aim: 2,
    of: (/** @type {Sections} */ { e }) => {
      const own = figure(e[framework], 'strict Redis', 'normal/p99')
      const bare = figure(e[framework], 'bare', 'normal/p99')
      const value = own.value - bare.value
      const noise = Math.hypot(own.noise * own.value, bare.noise * bare.value)
      return { value, noise: noise / Math.abs(value) }
    },
  })),
]

/** @type {Bar[]} */
const accuracy = ['', ', Cluster', ', Sentinel'].flatMap((topology) =>
  [...constantSize, 'sliding-window-log'].map((name) => ({
    section: 'f',
    title: `${name}${topology}: admitted of 2,000 at once, limit ${burstLimit}`,
    better: /** @type {const} */ ('equal'),
    floor: burstLimit,
    aim: burstLimit,
    of: (/** @type {Sections} */ { f }) => figure(f.accuracy, `${name}${topology}`, 'burst'),
  })),
)

const bars = [...throughput, ...redisCost, ...redisMemory, ...memoryStore, ...http, ...accuracy]

module.exports = { bars, NotMeasured }
