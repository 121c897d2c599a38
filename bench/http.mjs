// What a limiter costs over HTTP: throughput in a closed loop and CPU time per request of the server's process, by that
// of a server without one; and the 99th percentile that it adds at half load, in an open loop.
// Arguments: frameworks, default all. --kinds=bare,memory,... --rounds=9 --requests=5000 --latency
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { request } from 'node:http'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { report, table, thousands } from './report.mjs'
import { withRedis } from './servers.mjs'

const here = dirname(fileURLToPath(import.meta.url))
export const frameworks = ['express', 'koa', 'fastify']
/** Kinds of server that let requests pass, the control first, and that refuse all. */
export const passing = ['bare', 'hook', 'constant', 'memory', 'redis']
export const refusing = ['constant-429', 'denied']

function answer(child, message) {
  if (message) child.send(message)
  return new Promise((resolve, reject) => {
    const ended = () => reject(new Error(`${child.spawnargs.slice(1).join(' ')} ended`))
    child.once('exit', ended)
    child.once('message', (told) => {
      child.off('exit', ended)
      resolve(told)
    })
  })
}

/** Starts a server of its own process. `program` may be that of another version. */
export async function startServer({
  framework,
  kind,
  env = {},
  args = [],
  execArgv = [],
  program = join(here, 'http-server.mjs'),
}) {
  const child = fork(program, [framework, kind, ...args], {
    env: { ...process.env, NODE_ENV: 'production', ...env },
    execArgv,
  })
  const port = await answer(child)
  return {
    framework,
    kind,
    port,
    pid: child.pid,
    cpuUs: () => answer(child, 'cpu'),
    async stop() {
      const exited = once(child, 'exit')
      child.disconnect()
      await exited
    },
  }
}

/** Starts the generator of requests, which serves one run at a time. */
export function startLoad() {
  const child = fork(join(here, 'http-load.mjs'))
  return { run: (load) => answer(child, load), stop: () => child.disconnect() }
}

/** One reply of a server, for another to repeat: without what Node.js adds by itself. */
export async function replyOf({ port, path = '/' }) {
  const sent = request({ port, path, host: '127.0.0.1', localAddress: '127.0.1.1' }).end()
  const [response] = await once(sent, 'response')
  response.setEncoding('utf8')
  const body = (await response.toArray()).join('')
  const headers = {}
  const own = ['date', 'connection', 'keep-alive', 'x-powered-by']
  for (let i = 0; i < response.rawHeaders.length; i += 2) {
    const name = response.rawHeaders[i]
    if (!own.includes(name.toLowerCase())) headers[name] = response.rawHeaders[i + 1]
  }
  return { status: response.statusCode, headers, body }
}

/** Closed-loop runs of all servers in turn: for each its rounds, as requests per second and CPU microseconds of one. */
export async function throughput(
  servers,
  load,
  { rounds = 9, requests = 5000, connections = 64, clients } = {},
) {
  const measured = new Map(servers.map((server) => [server, []]))
  // Counted in requests rather than time, so that code is as hot on a busy machine as on an idle one.
  for (const server of servers) {
    await load.run({ port: server.port, connections, clients, total: 4 * requests })
  }
  for (let round = 0; round < rounds; round++) {
    // Each other round backwards, so that a drift of the machine meets all alike.
    for (const server of round % 2 ? servers : [...servers].reverse()) {
      const before = await server.cpuUs()
      const { ms, counts } = await load.run({ port: server.port, connections, clients, total: requests })
      const cpuUs = ((await server.cpuUs()) - before) / requests
      measured.get(server).push({ perSecond: (requests * 1000) / ms, cpuUs, counts })
    }
  }
  return measured
}

export function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)]
}

/** The median ratio of two servers, round by round: of their throughput, and of their CPU time turned upside down. */
export function ratios(control, ours) {
  return {
    perSecond: median(ours.map(({ perSecond }, i) => perSecond / control[i].perSecond)),
    cpu: median(ours.map(({ cpuUs }, i) => control[i].cpuUs / cpuUs)),
  }
}

/** A table of throughput against the first server. */
export function throughputTable(servers, measured) {
  const control = measured.get(servers[0])
  const rows = servers.map((server) => {
    const rounds = measured.get(server)
    const { perSecond, cpu } = ratios(control, rounds)
    return [
      server.name ?? server.kind,
      thousands(median(rounds.map((round) => round.perSecond))),
      median(rounds.map((round) => round.cpuUs)).toFixed(1),
      perSecond.toFixed(3),
      cpu.toFixed(3),
    ]
  })
  return table(['server', 'requests/s', 'CPU us', 'throughput ratio', 'CPU ratio'], rows)
}

/** Open-loop runs at half the throughput of the first server: milliseconds of each, medians over the rounds. */
export async function latency(
  servers,
  load,
  perSecond,
  { rounds = 5, requests = 5000, connections = 64 } = {},
) {
  const measured = new Map(servers.map((server) => [server, []]))
  for (let round = 0; round < rounds; round++) {
    for (const server of servers) {
      measured
        .get(server)
        .push(await load.run({ port: server.port, connections, total: requests, rate: perSecond / 2 }))
    }
  }
  return servers.map((server) => ({
    kind: server.kind,
    p50: median(measured.get(server).map(({ p50 }) => p50)),
    p99: median(measured.get(server).map(({ p99 }) => p99)),
  }))
}

async function main() {
  const given = process.argv.slice(2)
  const flag = (name, otherwise) =>
    given.find((arg) => arg.startsWith(`--${name}=`))?.slice(name.length + 3) ?? otherwise
  const names = given.filter((arg) => !arg.startsWith('--'))
  const kinds = flag('kinds', [...passing, ...refusing].join()).split(',')
  const load = startLoad()
  const parts = []
  let version
  await withRedis(async (redis) => {
    version = redis.version
    for (const framework of names.length > 0 ? names : frameworks) {
      const start = (kind, args) => startServer({ framework, kind, args, env: { REDIS_URL: redis.url } })
      const run = { rounds: Number(flag('rounds', 9)), requests: Number(flag('requests', 5000)) }
      const served = []
      for (const kind of passing.filter((kind) => kinds.includes(kind))) served.push(await start(kind))
      if (served.length > 0) {
        const measured = await throughput(served, load, run)
        parts.push(`### ${framework}: all admitted`, throughputTable(served, measured))
        if (given.includes('--latency')) {
          const bare = median(measured.get(served[0]).map(({ perSecond }) => perSecond))
          const rows = (await latency(served, load, bare)).map(({ kind, p50, p99 }) => [
            kind,
            p50.toFixed(2),
            p99.toFixed(2),
          ])
          parts.push(
            `At half of ${thousands(bare)} requests a second:`,
            table(['server', 'p50 ms', 'p99 ms'], rows),
          )
        }
      }
      if (refusing.some((kind) => kinds.includes(kind))) {
        const denied = await start('denied')
        // The first of each client passes.
        await load.run({ port: denied.port, connections: 64, total: 640 })
        const constant = await start('constant-429', [JSON.stringify(await replyOf(denied))])
        const measured = await throughput([constant, denied], load, run)
        parts.push(`### ${framework}: all denied`, throughputTable([constant, denied], measured))
        served.push(constant, denied)
      }
      for (const server of served) await server.stop()
    }
  })
  load.stop()
  report('http', 'Over HTTP', version, parts)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main()
