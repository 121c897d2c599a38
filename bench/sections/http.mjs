import { startWorker } from '../children.mjs'
import { frameworks, kindOf, namesFor } from '../contestants/http.mjs'
import { replyOf, startLoad } from '../http.mjs'
import { inRounds } from '../rounds.mjs'
import { serverCounts } from '../server-counts.mjs'
import statistics from '../statistics.cjs'

const connections = 64
/** 95 of 100 requests come from clients that are denied. */
const attack = [...Array(19).fill('/denied'), '/']
const normal = ['/']

/** Throughput, latency and CPU of each framework's servers: { express: rows, koa: rows, fastify: rows }. */
export async function measureHttp(redis, { quick }, onProgress) {
  const load = startLoad()
  const ms = quick ? 150 : 1000
  const result = {}
  try {
    for (const framework in frameworks) {
      const refusal = await refusalOf(framework, load)
      const bare = []
      const list = namesFor(framework).map((name) => ({
        name,
        kind: kindOf(name),
        measure: () => measureServer({ framework, name, refusal }, redis, load, ms, bare),
      }))
      // The first sets the rate for the open loops of the others.
      result[framework] = await inRounds(list, quick ? 1 : 3, (step) => onProgress(`${framework}, ${step}`))
    }
  } finally {
    load.stop()
  }
  return result
}

async function start(task) {
  const server = startWorker('http-server.mjs', task)
  const port = await server.told()
  const cpuUs = () => {
    server.tell('cpu')
    return server.told()
  }
  return { port, cpuUs, stop: server.stop }
}

/** What ours answers to a client that it denies, for the constant server to repeat. */
async function refusalOf(framework, load) {
  const server = await start({ framework, name: 'memory' })
  try {
    await load.run({ port: server.port, connections: 1, ms: 20, paths: ['/denied'] })
    const refusal = await replyOf({ port: server.port, path: '/denied' })
    if (refusal.status !== 429) throw new Error(`${framework} answered ${refusal.status}, not 429`)
    return refusal
  } finally {
    await server.stop()
  }
}

/** `bare`: requests a second of the bare server so far, to which this run adds if it is that one. */
async function measureServer(task, { url, client }, load, ms, bare) {
  await client.flushall()
  const server = await start({ ...task, url })
  const run = (more) => load.run({ port: server.port, connections, ms, ...more })
  try {
    const closed = async (paths) => {
      await run({ paths, ms: ms / 3 })
      const cpu = await server.cpuUs()
      const executed = await serverCounts(client)
      const { counts, requests, ms: took } = await run({ paths })
      const scripts = (await serverCounts(client)).scripts - executed.scripts
      expect(task.name, paths, counts, requests)
      const perSecond = (requests * 1000) / took
      return {
        perSecond,
        cpuUs: ((await server.cpuUs()) - cpu) / requests,
        perScript: scripts === 0 ? 0 : requests / scripts,
      }
    }
    const figures = {}
    for (const [traffic, paths] of Object.entries({ normal, attack })) {
      const { perSecond, cpuUs, perScript } = await closed(paths)
      if (task.name === 'bare' && traffic === 'normal') bare.push(perSecond)
      const { p50, p99 } = await run({ paths, rate: statistics.median(bare) / 2 })
      Object.assign(
        figures,
        Object.fromEntries(
          Object.entries({ perSecond, cpuUs, perScript, p50, p99 }).map(([what, value]) => [
            `${traffic}/${what}`,
            value,
          ]),
        ),
      )
    }
    return figures
  } finally {
    await server.stop()
  }
}

/** A server that fails is none to compare with. */
function expect(name, paths, counts, requests) {
  const denied = counts['429'] ?? 0
  const others = requests - (counts['200'] ?? 0) - denied
  const expected = paths === attack && name !== 'bare' ? 0.95 * requests : 0
  // Each client's first request passes, and a run may begin and end anywhere in the order of the paths.
  if (others > 0 || Math.abs(denied - expected) > connections + attack.length) {
    throw new Error(`answered ${JSON.stringify(counts)} where ${Math.round(expected)} were to be denied`)
  }
}
