// What is simulated: traffic on a number of processes under one limit, at sizes from one server to a thousand.
import { World } from './world.mjs'

/** @typedef {import('./world.mjs').Setting} Setting */

/** A full bucket of more would take minutes to empty, of which nothing new is to be seen. */
const largestBurst = 50_000
const loads = /** @type {const} */ ([0.5, 0.8, 1, 2])

/** @param {Setting} setting @param {(world: World) => Promise<unknown>} traffic */
async function play(setting, traffic) {
  const world = new World(setting)
  await traffic(world)
  await world.end()
  return world
}

/** @param {World} world @param {number} load times the limit @param {number} ms */
const sendFor = (world, load, ms) => world.send(Math.round((load * world.setting.limit * ms) / 60_000), ms)

/** More than the bucket and all leases have, within half a second. @param {World} world */
function surge(world) {
  const { burst, limit } = world.setting
  return world.send(Math.ceil(burst + world.bound + limit / 120 + world.mostNodes), 500)
}

/** @param {World} world */
const perRequest = (world) => world.calls / world.requests

/**
 * One number of processes under one limit: a burst of exactly what may pass at once, steady loads, and a surge.
 * @param {number} nodes @param {number} limit @param {number} seed
 * @param {number} most requests of a load, and ten minutes of it at most
 */
export async function gridRow(nodes, limit, seed, most) {
  const burst = Math.min(limit, largestBurst)
  const setting = { nodes, limit, burst, seed }
  const bursts = await play(setting, (world) => world.send(burst, 100))
  const steady = []
  let servedAtTwice = 0
  for (const load of loads) {
    const ms = Math.min(600_000, (most / (load * limit)) * 60_000)
    for (const denyCache of load > 1 ? [false, true] : [false]) {
      const traffic = async (/** @type {World} */ world) => {
        if (load > 1) await world.drain()
        await sendFor(world, load, ms)
      }
      const world = await play({ ...setting, denyCache }, traffic)
      steady.push({ load, denyCache, world })
      if (load > 1) servedAtTwice = (world.admissions.length / limit) * (60_000 / ms)
    }
  }
  const surged = await play(setting, async (world) => {
    await sendFor(world, 0.8, Math.min(60_000, Math.max(6000, (most / limit) * 60_000)))
    await surge(world)
  })
  const uncached = [bursts, ...steady.filter(({ denyCache }) => !denyCache).map(({ world }) => world), surged]
  return {
    nodes,
    limit,
    burst,
    burstAdmitted: bursts.admissions.length,
    calls: steady.map(({ world }) => perRequest(world)),
    burstHeld: bursts.mostHeld,
    servedAtTwice,
    falseDenials: uncached.reduce((sum, world) => sum + world.falseDenials, 0),
    longestWaitMs: Math.max(...uncached.map((world) => world.longestWaitMs)),
    beyond: Math.max(...uncached.map((world) => world.beyond)),
    bound: surged.bound,
  }
}

/** Calls a request at a limit of 1,000,000 a minute, once a second of traffic has shown what is asked for. */
export async function callsRow(
  /** @type {number} */ nodes,
  /** @type {number} */ max,
  /** @type {number} */ seed,
) {
  let [calls, requests] = [0, 0]
  const setting = { nodes, max, limit: 1_000_000, burst: largestBurst, seed }
  const world = await play(setting, async (running) => {
    await sendFor(running, 1, 1000)
    ;[calls, requests] = [running.calls, running.requests]
    await sendFor(running, 1, 15_000)
  })
  const perMax = ((world.calls - calls) / (world.requests - requests)) * max
  return { nodes, max, perMax, allowed: world.admissions.length / world.requests }
}

const stress = { limit: 60_000, burst: 1000 }

/** @type {{ name: string, setting: Omit<Setting, 'seed' | 'nodes'>, first?: number, traffic: (world: World, nodes: number) => Promise<unknown> }[]} */
const hardships = [
  { name: 'none', setting: stress, traffic: async (world) => sendFor(world, 0.8, 20_000) },
  {
    name: 'requests by Zipf’s law',
    setting: { ...stress, skewed: true },
    traffic: async (world) => sendFor(world, 0.8, 20_000),
  },
  {
    name: 'a crash every second',
    setting: stress,
    traffic: (world) => swap(world, 20, () => false),
  },
  {
    name: 'one goes and one comes every second, half of them by a crash',
    setting: { ...stress, counted: true },
    traffic: (world) => swap(world, 30, (second) => second % 2 === 0),
  },
  {
    name: 'all begin at once',
    setting: { ...stress, counted: true },
    traffic: async (world) => sendFor(world, 0.8, 4000),
  },
  {
    name: 'their number grows from a tenth within ten seconds',
    setting: { ...stress, counted: true },
    first: 0.1,
    traffic: async (world, nodes) => {
      await sendFor(world, 0.8, 10_000)
      const pauseMs = 10_000 / (nodes - world.nodes.length)
      while (world.nodes.length < nodes) {
        world.join()
        await sendFor(world, 0.8, pauseMs)
      }
    },
  },
]

/** @param {World} world @param {number} seconds @param {(second: number) => boolean} closes */
async function swap(world, seconds, closes) {
  for (let second = 0; second < seconds; second++) {
    await sendFor(world, 0.8, 1000)
    world.leave(closes(second))
    world.join()
  }
}

/** Leases under hardship, each ending in a surge. @param {readonly number[]} sizes @param {number} seed */
export async function hardshipRows(sizes, seed) {
  const rows = []
  for (const { name, setting, first = 1, traffic } of hardships) {
    for (const nodes of sizes) {
      const started = { ...setting, nodes: Math.ceil(nodes * first), seed }
      const world = await play(started, async (running) => {
        await traffic(running, nodes)
        await surge(running)
      })
      const { beyond, bound, falseDenials, longestWaitMs } = world
      rows.push({ name, nodes, calls: perRequest(world), falseDenials, longestWaitMs, beyond, bound })
    }
  }
  return rows
}

/** @type {{ algorithm: import('@sluice/core').Algorithm, boundOf: (limit: number) => number }[]} */
const windowed = [
  { algorithm: 'fixed-window', boundOf: (limit) => 2 * limit },
  { algorithm: 'sliding-window-counter', boundOf: (limit) => 2 * limit - 1 },
  { algorithm: 'sliding-window-ring', boundOf: (limit) => limit },
]

/** Four times the limit on either side of a window's edge. @param {readonly number[]} sizes @param {number} seed */
export async function windowRows(sizes, seed) {
  const limit = 6000
  const rows = []
  for (const { algorithm, boundOf } of windowed) {
    for (const nodes of sizes) {
      const world = await play({ algorithm, nodes, limit, burst: limit, seed }, async (running) => {
        await sendFor(running, 0.5, 50_000)
        await sendFor(running, 12, 20_000)
        await sendFor(running, 0.5, 20_000)
      })
      const { mostInWindow, falseDenials, longestWaitMs } = world
      rows.push({
        algorithm,
        nodes,
        limit,
        calls: perRequest(world),
        mostInWindow,
        falseDenials,
        longestWaitMs,
        bound: boundOf(limit),
      })
    }
  }
  return rows
}
