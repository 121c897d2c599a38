import { once } from 'node:events'
import { request } from 'node:http'
import { startWorker } from '../children.mjs'
import { frameworks, kindOf, namesFor } from '../contestants/http.mjs'
import { rowOf } from '../rounds.mjs'
import { serverCounts } from '../server-counts.mjs'
import statistics from '../statistics.cjs'

const connections = 64
/** The paths of the requests, in turn, and the control of each traffic. */
const traffics = {
  normal: { paths: ['/'], control: 'bare' },
  // 95 of 100 requests come from clients that are denied.
  attack: { paths: [...Array(19).fill('/denied'), '/'], control: 'constant 429' },
}

/**
 * `generations`: times that all servers are started anew, since how code is compiled is the luck of a process;
 * `warmUp`: requests before each traffic is measured, counted in requests so that code is as hot on a slow machine;
 * `rounds`: short runs of each server in turn, of `requests`, so that a drift of the machine meets all alike; before each
 * `lead` requests that do not count, since connections and leases go cold between the turns;
 * `ms`: of an open loop.
 */
const long = { generations: 5, warmUp: 5000, rounds: 5, lead: 400, requests: 1600, ms: 600 }
const short = { generations: 1, warmUp: 500, rounds: 2, lead: 0, requests: 200, ms: 100 }

/** Throughput, latency and CPU of each framework's servers: { express: rows, koa: rows, fastify: rows }. */
export async function measureHttp(redis, { quick }, onProgress) {
  const size = quick ? short : long
  const load = startWorker('http-load.mjs')
  const run = (port, traffic, more) => {
    load.tell({ port, connections, paths: traffics[traffic].paths, ...more })
    return load.told()
  }
  const result = {}
  try {
    for (const framework in frameworks) {
      const refusal = await refusalOf(framework, run)
      const runs = new Map(namesFor(framework).map((name) => [name, []]))
      const errors = new Map()
      for (let generation = 0; generation < size.generations; generation++) {
        onProgress(`${framework}, servers ${generation + 1} of ${size.generations}`)
        const names = [...runs.keys()].filter((name) => !errors.has(name))
        const tasks = names.map((name) => ({ framework, name, refusal, url: redis.url }))
        await redis.client.flushall()
        for (const { name, figures, error } of await measureTogether(tasks, redis.client, run, size)) {
          if (error) errors.set(name, error.message)
          else runs.get(name).push(figures)
        }
      }
      result[framework] = [...runs].map(([name, measured]) =>
        rowOf({ name, kind: kindOf(name) }, measured, errors.get(name)),
      )
    }
  } finally {
    await load.stop()
  }
  return result
}

async function start(task) {
  const worker = startWorker('http-server.mjs', task)
  const port = await worker.told()
  const cpuUs = () => {
    worker.tell('cpu')
    return worker.told()
  }
  return { port, cpuUs, stop: worker.stop }
}

/** What ours answers to a client that it denies, for the constant server to repeat: without what Node.js adds itself. */
async function refusalOf(framework, run) {
  const server = await start({ framework, name: 'memory' })
  try {
    await run(server.port, 'attack', { total: 20 * connections })
    const sent = request({
      port: server.port,
      path: '/denied',
      host: '127.0.0.1',
      localAddress: '127.0.1.1',
    }).end()
    const [response] = await once(sent, 'response')
    if (response.statusCode !== 429) throw new Error(`${framework} answered ${response.statusCode}, not 429`)
    const headers = {}
    for (let i = 0; i < response.rawHeaders.length; i += 2) {
      const name = response.rawHeaders[i]
      if (!/^(?:date|connection|keep-alive|x-powered-by)$/i.test(name)) {
        headers[name] = response.rawHeaders[i + 1]
      }
    }
    return { headers, body: (await response.setEncoding('utf8').toArray()).join('') }
  } finally {
    await server.stop()
  }
}

/** Measures servers that are all up at once, each in turn: of each its `figures`, or the `error` with which it fell out. */
async function measureTogether(tasks, client, run, size) {
  const list = tasks.map((task) => ({
    name: task.name,
    task,
    rounds: { normal: [], attack: [] },
    figures: {},
  }))
  const each = async (measure, order = list) => {
    for (const one of order) {
      if (!one.error) await measure(one).catch((error) => Object.assign(one, { error }))
    }
  }
  try {
    await each(async (one) => {
      one.server = await start(one.task)
    })
    for (const traffic in traffics) {
      await each(({ server }) => run(server.port, traffic, { total: size.warmUp }))
      for (let round = 0; round < size.rounds; round++) {
        await each(
          async ({ name, server, rounds }) => {
            if (size.lead > 0) await run(server.port, traffic, { total: size.lead })
            rounds[traffic].push(await closedLoop(name, server, traffic, client, run, size.requests))
          },
          round % 2 ? [...list].reverse() : list,
        )
      }
      const control = list.find(({ name }) => name === traffics[traffic].control)
      await each(async ({ rounds, figures }) => {
        for (const what of ['perSecond', 'cpuUs', 'perScript']) {
          figures[`${traffic}/${what}`] = statistics.median(rounds[traffic].map((round) => round[what]))
        }
        figures[`${traffic}/ratio`] = statistics.median(
          rounds[traffic].map(({ perSecond }, i) => perSecond / control.rounds[traffic][i].perSecond),
        )
      })
    }
    const rate = list.find(({ name }) => name === 'bare').figures['normal/perSecond'] / 2
    for (const traffic in traffics) {
      await each(async ({ server, figures }) => {
        const { p50, p99 } = await run(server.port, traffic, { ms: size.ms, rate })
        Object.assign(figures, { [`${traffic}/p50`]: p50, [`${traffic}/p99`]: p99 })
      })
    }
  } finally {
    for (const { server } of list) await server?.stop()
  }
  return list
}

/** One run in which each connection asks again when it was answered. */
async function closedLoop(name, server, traffic, client, run, total) {
  const before = await serverCounts(client)
  const cpu = await server.cpuUs()
  const { counts, requests, ms } = await run(server.port, traffic, { total })
  const cpuUs = ((await server.cpuUs()) - cpu) / requests
  const scripts = (await serverCounts(client)).scripts - before.scripts
  expect(name, traffic, counts, requests)
  return { perSecond: (requests * 1000) / ms, cpuUs, perScript: scripts === 0 ? 0 : requests / scripts }
}

/** A server that fails is none to compare with. */
function expect(name, traffic, counts, requests) {
  const denied = counts['429'] ?? 0
  const others = requests - (counts['200'] ?? 0) - denied
  const expected = traffic === 'attack' && name !== 'bare' ? 0.95 * requests : 0
  // Each client's first request passes, and a run may begin and end anywhere in the order of the paths.
  if (others > 0 || Math.abs(denied - expected) > connections + traffics.attack.paths.length) {
    throw new Error(`answered ${JSON.stringify(counts)} where ${Math.round(expected)} were to be denied`)
  }
}
