// Finds, starts and stops Redis servers for tests. CommonJS, so that plain scripts and tests load the same file.
const { spawn, spawnSync } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const tls = require('node:tls')

const root = path.dirname(__dirname)

/** @param {string} command */
function onPath(command) {
  for (const folder of (process.env.PATH ?? '').split(path.delimiter)) {
    const file = path.join(folder, command)
    try {
      fs.accessSync(file, fs.constants.X_OK)
      return file
    } catch {}
  }
  return undefined
}

/**
 * Runs a command, its output on stderr, so that stdout stays the caller's.
 * @param {string} command
 * @param {string[]} args
 */
function succeeds(command, args, quiet = false) {
  const { status } = spawnSync(command, args, { cwd: root, stdio: quiet ? 'ignore' : ['ignore', 2, 2] })
  return status === 0
}

function isDebianRoot() {
  return process.getuid?.() === 0 && fs.existsSync('/etc/debian_version') && onPath('apt-get') !== undefined
}

const toInstall =
  'Found no Redis server. Put redis-server (6.2 or newer) or valkey-server on PATH, start Docker, or set REDIS_URL.'

/**
 * Finds a server: `redis-server` or `valkey-server` on PATH, Docker, or on Debian as root an installed package.
 * @returns {{ kind: 'binary', path: string } | { kind: 'docker' }}
 */
function findRedisServer() {
  const found = onPath('redis-server') ?? onPath('valkey-server')
  if (found) return { kind: 'binary', path: found }
  if (onPath('docker') && succeeds('docker', ['info'], true)) return { kind: 'docker' }
  if (isDebianRoot()) {
    const apt = ['-o', 'DPkg::Lock::Timeout=300']
    const install = [...apt, 'install', '-y', '--no-install-recommends', 'redis-server']
    if (succeeds('apt-get', [...apt, 'update']) && succeeds('apt-get', install)) {
      const installed = onPath('redis-server')
      if (installed) return { kind: 'binary', path: installed }
    }
  }
  throw new Error(toInstall)
}

/** @param {number} port */
function isFree(port) {
  return new Promise((resolve) => {
    const server = net.createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

// Below the kernel's ephemeral ports, and low enough for a cluster bus at port + 10000.
async function freePort() {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000)
    if (await isFree(port)) return port
  }
}

/** @param {string[]} words */
const encode = (words) =>
  `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`

/**
 * Sends commands over a connection of their own and resolves to the raw replies once there are enough of them.
 * @param {string} url
 * @param {string[][]} commands
 * @param {number} timeoutMs
 * @param {(replies: string) => boolean} enough
 * @returns {Promise<string>}
 */
function ask(url, commands, timeoutMs, enough) {
  const { hostname, port, protocol } = new URL(url)
  const to = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 6379) }
  return new Promise((resolve, reject) => {
    const socket = protocol === 'rediss:' ? tls.connect(to) : net.connect(to)
    const deadline = setTimeout(() => fail(`no answer within ${timeoutMs} ms`), timeoutMs)
    const end = () => {
      clearTimeout(deadline)
      socket.destroy()
    }
    const fail = (/** @type {string} */ why) => {
      end()
      reject(new Error(why))
    }
    let replies = ''
    socket.on('error', (/** @type {NodeJS.ErrnoException} */ error) => fail(error.message || `${error.code}`))
    socket.on('close', () => fail('the connection was closed'))
    socket.on('data', (chunk) => {
      replies += chunk
      if (!enough(replies)) return
      end()
      resolve(replies)
    })
    socket.write(commands.map(encode).join(''))
  })
}

/**
 * Resolves once the server behind a `redis://` or `rediss://` URL has answered PING; rejects with the reason if not.
 * @param {string} url
 */
async function ping(url, timeoutMs = 5000) {
  const { username, password } = new URL(url)
  const credentials = [username, password].filter(Boolean).map(decodeURIComponent)
  const commands = password ? [['AUTH', ...credentials], ['PING']] : [['PING']]
  const replies = await ask(url, commands, timeoutMs, (text) => text.split('\r\n').length > commands.length)
  const refusal = replies.split('\r\n').find((reply) => reply.startsWith('-'))
  if (refusal) throw new Error(`the server answered ${refusal.slice(1)}`)
  if (!replies.endsWith('+PONG\r\n')) throw new Error('what answers there is not Redis')
}

/** What kills each server that runs and removes its folder. @type {Set<() => void>} */
const running = new Set()
process.on('exit', () => {
  for (const kill of running) kill()
})

const pause = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms))

/**
 * @typedef {object} RedisServer
 * @property {number} port
 * @property {string} url
 * @property {number} pid of the server itself, for tests that stop, pause or kill it
 * @property {() => Promise<void>} stop kills the server, also a paused one, and resolves once it is gone
 */

/**
 * Starts a private, empty server on 127.0.0.1 that writes nothing to disk and dies with this process.
 * @param {object} [options]
 * @param {string[]} [options.args] further arguments of the server, such as `['--maxmemory', '2mb']`
 * @param {number} [options.port] default: a free port from 20000 to 31999
 * @returns {Promise<RedisServer>}
 */
async function startRedis({ args = [], port } = {}) {
  const found = findRedisServer()
  if (found.kind === 'docker') {
    throw new Error(
      'A private server needs redis-server or valkey-server on PATH: Docker serves only as REDIS_URL.',
    )
  }
  if (port !== undefined && !(await isFree(port))) throw new Error(`Port ${port} is taken.`)
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await launch(found.path, args, port ?? (await freePort()))
    } catch (error) {
      // Another process may have taken the port in between.
      if (port !== undefined || attempt === 3) throw error
    }
  }
}

/**
 * @param {string} binary
 * @param {string[]} args
 * @param {number} port
 * @returns {Promise<RedisServer>}
 */
async function launch(binary, args, port) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-redis-'))
  const log = path.join(folder, 'redis.log')
  const flags = ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
  const line = [binary, ...flags, ...args]
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
  const complete = (/** @type {string} */ text) => /^-|process_id:\d+\r\n/.test(text)
  const text = await ask(url, [['PING'], ['INFO', 'server']], 1000, complete).catch(() => '')
  return text.startsWith('-NOAUTH') || (text.startsWith('+PONG') && text.includes(`process_id:${pid}\r\n`))
}

module.exports = { findRedisServer, startRedis, ping }
