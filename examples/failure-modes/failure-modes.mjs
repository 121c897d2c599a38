// Stops and starts a private Redis under the traffic of server.mjs, and prints second by second what each route did.
//   node examples/failure-modes/failure-modes.mjs [seconds]     of each phase, default 3
// With --json, prints each answer and the server's log for a program.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import redis from '../../scripts/servers/redis.cjs'

const requests = [
  ['GET', '/'],
  ['POST', '/login'],
  ['GET', '/search'],
]
const everyMs = 50

const asJson = process.argv.includes('--json')
const seconds = Number(process.argv.find((argument) => /^\d+$/.test(argument)) ?? 3)
const print = asJson ? () => {} : console.log
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

let server = await redis.startRedis()
const program = fileURLToPath(new URL('server.mjs', import.meta.url))
const limited = spawn(process.execPath, [program], {
  env: { ...process.env, REDIS_URL: server.url, PORT: '0' },
  stdio: ['ignore', 'pipe', 'pipe'],
})
process.on('exit', () => limited.kill())
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))
limited.on('exit', (code) => {
  console.error(`The server ended with exit code ${code}.`)
  process.exit(1)
})

const log = []
createInterface(limited.stderr).on('line', (line) => {
  log.push(line)
  print(`      ${line}`)
})
const [greeting] = await once(createInterface(limited.stdout), 'line')
const url = greeting.replace('listening on ', '')

const startedMs = performance.now()
let sent = 0
const answers = []

/** The quotas that each route tells of while all is well. */
const usual = new Map()

/**
 * Sends a request and takes note of the answer. One that the store decided tells the usual quota; one that this process
 * decided tells a smaller one, and one that nobody decided tells none.
 */
async function send(phase, [method, path]) {
  const atMs = performance.now()
  const response = await fetch(`${url}${path}?account=${sent++}`, { method })
  const waitMs = performance.now() - atMs
  const body = await response.json()
  const quota = response.headers.get('ratelimit-policy')
  if (phase === 'warm-up') usual.set(path, quota)
  answers.push({
    phase,
    second: Math.floor((atMs - startedMs) / 1000),
    path,
    status: response.status,
    quota,
    degraded: quota !== usual.get(path),
    retryAfter: response.headers.get('retry-after'),
    problem: body.type,
    waitMs,
  })
}

/** Sends steady traffic to each route until `ended`, without waiting for answers; resolves when the last one came. */
async function traffic(phase, ended) {
  const pending = new Set()
  while (!ended()) {
    for (const request of requests) {
      const answer = send(phase, request).finally(() => pending.delete(answer))
      pending.add(answer)
    }
    await pause(everyMs)
  }
  await Promise.all(pending)
}

/** What each route did in a second. */
function row(second) {
  const of = (path) => answers.filter((answer) => answer.second === second && answer.path === path)
  const cells = requests.map(([, path]) => {
    const all = of(path)
    const count = (test) => String(all.filter(test).length).padStart(5)
    const worst = Math.ceil(Math.max(0, ...all.map(({ waitMs }) => waitMs)))
    const statuses = [200, 429, 503].map((status) => count((answer) => answer.status === status))
    return `${statuses.join('')}${count(({ degraded }) => degraded)}${String(worst).padStart(6)}`
  })
  return `${String(second).padStart(4)}  ${cells.join('  |')}`
}

const title = '  200  429  503 degr worst'
print(`      ${requests.map((request) => request.join(' ').padEnd(title.length)).join('  |')}`)
print(`   s  ${requests.map(() => title).join('  |')}`)
let printed = 0
const printRows = () => {
  for (; (printed + 1) * 1000 < performance.now() - startedMs; printed++) print(row(printed))
}
const printer = setInterval(printRows, 100)

/** Ends traffic once it has sent as much as takes the seconds of a phase. */
const afterPhase = () => {
  let left = (1000 * seconds) / everyMs
  return () => left-- === 0
}

for (const request of requests) await send('warm-up', request)
await traffic('before', afterPhase())

// Traffic goes on while the server stops and starts; what is on its way then belongs to neither phase.
let stopped = false
const stopping = traffic('stopping', () => stopped)
print('      --- Redis is killed')
await server.stop()
stopped = true
await stopping
await traffic('down', afterPhase())

const isUp = () => log.some((line) => line.includes('is up again'))
print('      --- Redis is started, empty')
const starting = traffic('starting', isUp)
server = await redis.startRedis({ port: server.port })
await starting
await traffic('after', afterPhase())

clearInterval(printer)
printRows()
limited.removeAllListeners('exit')
limited.kill()
await server.stop()
if (asJson) console.log(JSON.stringify({ answers, log }))
print('\nAnswers by status, how many of them Redis did not decide, and the longest wait in ms.')
