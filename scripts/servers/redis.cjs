// Finds, starts and stops Redis servers for tests. CommonJS, so that plain scripts and tests load the same file.
const { isDebianRoot, onPath, succeeds } = require('./commands.cjs')
const { launch } = require('./launch.cjs')
const { ask } = require('./resp.cjs')

const toInstall =
  'Found no Redis server. Put redis-server (6.2 or newer) or valkey-server on PATH, start Docker, or set REDIS_URL.'

/**
 * Finds a server: `redis-server` or `valkey-server` on PATH, Docker, or on Debian as root an installed package.
 * @returns {{ kind: 'binary', path: string } | { kind: 'docker' }}
 */
function findRedisServer() {
  const found = onPath('redis-server') ?? onPath('valkey-server')
  if (found) return { kind: 'binary', path: found }
  if (onPath('docker') && succeeds('docker', ['info'], { quiet: true })) return { kind: 'docker' }
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

/** The path of a server to start, which Docker has not got. */
function serverBinary() {
  const found = findRedisServer()
  if (found.kind === 'binary') return found.path
  throw new Error(
    'A private server needs redis-server or valkey-server on PATH: Docker serves only as REDIS_URL.',
  )
}

/**
 * Resolves once the server behind a `redis://` or `rediss://` URL has answered PING; rejects with the reason if not.
 * @param {string} url
 */
async function ping(url, timeoutMs = 5000) {
  const { username, password } = new URL(url)
  const credentials = [username, password].filter(Boolean).map(decodeURIComponent)
  const replies = await ask(url, password ? [['AUTH', ...credentials], ['PING']] : [['PING']], timeoutMs)
  for (const reply of replies)
    if (reply instanceof Error) throw new Error(`the server answered ${reply.message}`)
}

/**
 * Starts a private, empty server on 127.0.0.1 that writes nothing to disk and dies with this process.
 * @param {object} [options]
 * @param {string[]} [options.args] further arguments of the server, such as `['--maxmemory', '2mb']`
 * @param {number} [options.port] default: a free port from 22700 to 29999
 * @param {string} [options.binary] path of another server, default: that of `findRedisServer`
 */
async function startRedis({ args = [], port, binary = serverBinary() } = {}) {
  return launch({ binary, args, port })
}

/** @typedef {import('./launch.cjs').RedisServer} RedisServer */

module.exports = { findRedisServer, serverBinary, startRedis, ping }
