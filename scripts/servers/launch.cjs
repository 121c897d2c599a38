// Launches server processes that die with this one. What servers of every kind and topology share.
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { onPath } = require('./commands.cjs')
const { ask } = require('./resp.cjs')

/** @param {number} port */
function isFree(port) {
  return new Promise((resolve) => {
    const server = net.createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

/** How far above its port a cluster node has its bus. */
const BUS = 10_000

/**
 * A free port below those that the kernel gives to clients: for a cluster node from 20000 to 22699, where its bus is
 * below as well, else from 22700 to 29999, away from both.
 * @param {boolean} bus
 */
async function freePort(bus) {
  const [first, count] = bus ? [20_000, 2_700] : [22_700, 7_300]
  for (;;) {
    const port = first + Math.floor(Math.random() * count)
    if ((await isFree(port)) && (!bus || (await isFree(port + BUS)))) return port
  }
}

/** What kills each server that runs and removes its folder. @type {Set<() => void>} */
const running = new Set()
process.on('exit', () => {
  for (const kill of running) kill()
})

const pause = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms))

/**
 * Asks until the answer is yes; while asking fails, that is a no.
 * @template T
 * @param {string} what what is waited for, to be named if it does not come within `timeoutMs`
 * @param {() => Promise<T>} question
 * @param {number} [timeoutMs]
 * @returns {Promise<Exclude<T, false | null | undefined>>} the answer
 */
async function until(what, question, timeoutMs = 20_000) {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    /** @type {unknown} */
    let cause
    const answer = await question().catch((error) => {
      cause = error
    })
    if (answer) return /** @type {Exclude<T, false | null | undefined>} */ (answer)
    if (Date.now() > deadline) throw new Error(`Not within ${timeoutMs} ms: ${what}`, { cause })
    await pause(20)
  }
}

/**
 * @typedef {object} RedisServer
 * @property {number} port
 * @property {string} url
 * @property {number} pid of the server itself, for tests that stop, pause or kill it
 * @property {() => Promise<void>} stop kills the server, also a paused one, and resolves once it is gone
 */

/**
 * @typedef {object} Launch
 * @property {string} binary path of the server
 * @property {string[]} [args] its further arguments
 * @property {boolean} [sentinel] starts it as a Sentinel
 * @property {boolean} [bus] sees to it that the port has room for a cluster node's bus
 * @property {number} [port] default: a free port
 */

/**
 * Launches an empty server on 127.0.0.1, in a folder of its own.
 * @param {Launch} options
 * @returns {Promise<RedisServer>}
 */
async function launch(options) {
  const { port, bus = false } = options
  if (port !== undefined && !(await isFree(port))) throw new Error(`Port ${port} is taken.`)
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await launchAt(port ?? (await freePort(bus)), options)
    } catch (error) {
      // Another process may have taken the port in between.
      if (port !== undefined || attempt === 3) throw error
    }
  }
}

/**
 * Launches servers side by side; if one does not start, none is left.
 * @param {Launch[]} list
 */
async function launchAll(list) {
  const results = await Promise.allSettled(list.map(launch))
  const servers = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  const failure = results.find((result) => result.status === 'rejected')
  if (!failure) return servers
  await stopAll(servers)
  throw failure.reason
}

/** @param {RedisServer[]} servers */
async function stopAll(servers) {
  await Promise.all(servers.map((server) => server.stop()))
}

/**
 * @param {number} port
 * @param {Launch} options
 * @returns {Promise<RedisServer>}
 */
async function launchAt(port, { binary, args = [], sentinel = false }) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-redis-'))
  const log = path.join(folder, 'redis.log')
  const flags = ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
  const line = [binary, ...flags, ...args]
  if (sentinel) {
    // A Sentinel insists on a file to keep its state in.
    fs.writeFileSync(path.join(folder, 'sentinel.conf'), '')
    line.splice(1, 0, 'sentinel.conf', '--sentinel')
  }
  // On Linux the kernel kills the server with its parent, even if that is killed itself.
  const setpriv = process.platform === 'linux' ? onPath('setpriv') : undefined
  if (setpriv) line.unshift(setpriv, '--pdeathsig', 'KILL')
  const output = fs.openSync(log, 'w')
  const child = spawn(/** @type {string} */ (line[0]), line.slice(1), {
    cwd: folder,
    stdio: ['ignore', output, output],
  })
  fs.closeSync(output)
  const gone = once(child, 'exit').catch(() => {})
  const ended = () => child.pid === undefined || child.exitCode !== null || child.signalCode !== null
  const kill = () => {
    child.kill('SIGKILL')
    fs.rmSync(folder, { recursive: true, force: true })
  }
  running.add(kill)
  const stop = async () => {
    running.delete(kill)
    child.ref()
    child.kill('SIGKILL')
    await gone
    fs.rmSync(folder, { recursive: true, force: true })
  }

  const url = `redis://127.0.0.1:${port}`
  const pid = child.pid ?? 0
  const deadline = Date.now() + 10_000
  while (!(await answers(url, pid))) {
    if (ended() || Date.now() > deadline) {
      const said = fs.readFileSync(log, 'utf8').trim().split('\n').slice(-5)
      await stop()
      throw new Error([`${line.join(' ')} did not start:`, ...said].join('\n'))
    }
    await pause(5)
  }
  child.unref()
  return { port, url, pid, stop }
}

/**
 * Tells whether the server at a URL is the one with this process id: another may have been faster to take the port.
 * One that asks for a password does not tell its id.
 * @param {string} url
 * @param {number} pid
 */
async function answers(url, pid) {
  const [reply] = await ask(url, [['INFO', 'server']], 1000).catch(() => [null])
  if (reply instanceof Error) return reply.message.startsWith('NOAUTH')
  return typeof reply === 'string' && reply.includes(`process_id:${pid}\r\n`)
}

module.exports = { launch, launchAll, stopAll, until }
