// Starts a master, its replicas and the Sentinels that watch them, for tests.
const { launchAll, stopAll, until } = require('./launch.cjs')
const { serverBinary } = require('./redis.cjs')
const { call } = require('./resp.cjs')

/** @typedef {import('./launch.cjs').RedisServer} RedisServer */

/** The name by which the Sentinels know the master. */
const name = 'main'

/**
 * Starts private, empty servers and Sentinels on 127.0.0.1 that die with this process; ready when all know all.
 * The first of `servers` starts as the master. A majority of the Sentinels replaces it once it has been silent for
 * 500 ms.
 * @param {object} [options]
 * @param {number} [options.replicas]
 * @param {number} [options.sentinels]
 * @param {string[]} [options.args] further arguments of every server, not of the Sentinels
 * @param {string} [options.binary] path of another server, default: that of `findRedisServer`
 */
async function startSentinel({ replicas = 1, sentinels = 3, args = [], binary = serverBinary() } = {}) {
  const server = { binary, args: ['--repl-diskless-sync-delay', '0', ...args] }
  const all = await launchAll([
    ...Array(1 + replicas).fill(server),
    ...Array(sentinels).fill({ binary, sentinel: true }),
  ])
  const servers = all.slice(0, 1 + replicas)
  const watchers = all.slice(1 + replicas)
  try {
    await watch(servers, watchers)
  } catch (error) {
    await stopAll(all)
    throw error
  }

  /** The port of the master, as the first Sentinel to answer knows it. */
  const masterPort = () => Promise.any(watchers.map(masterKnownBy))

  /** The port of the master, once all Sentinels know the same. */
  const agreedPort = async () => {
    const [port, ...others] = await Promise.all(watchers.map(masterKnownBy))
    return others.every((other) => other === port) && port
  }

  /**
   * Has another server promoted while the master is well; resolves once it is the master and all Sentinels know. The
   * old master still takes writes, which will be lost, from those connected to it: Sentinels demote it seconds later.
   */
  async function failover() {
    // One that has not heard of an earlier failover yet would make that look like this one.
    const old = await until('all Sentinels know the same master', agreedPort)
    // One Sentinel only: each that is told begins a failover of its own.
    const { port: sentinel } = /** @type {RedisServer} */ (watchers[0])
    await until('another server is the master', async () => {
      const about = await aboutMaster(sentinel)
      if (about.get('port') === `${old}` && !about.get('flags')?.includes('failover_in_progress')) {
        // Refused while it knows of no good replica; one that has begun may be given up.
        await call(sentinel, 'SENTINEL', 'FAILOVER', name)
        return false
      }
      const port = await agreedPort()
      if (!port || port === old) return false
      return String(await call(port, 'INFO', 'replication')).includes('role:master')
    })
  }

  return {
    name,
    sentinels: watchers.map(({ port }) => ({ host: '127.0.0.1', port })),
    servers,
    masterPort,
    failover,
    stop: () => stopAll(all),
  }
}

/** @param {RedisServer} sentinel */
async function masterKnownBy({ port }) {
  const address = await call(port, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name)
  return Number(/** @type {string[]} */ (address)[1])
}

/**
 * What a Sentinel knows about the master, by field.
 * @param {number} port
 */
async function aboutMaster(port) {
  const reply = /** @type {string[]} */ (await call(port, 'SENTINEL', 'MASTER', name))
  /** @type {Map<string, string>} */
  const fields = new Map()
  for (let at = 0; at < reply.length; at += 2) fields.set(`${reply[at]}`, `${reply[at + 1]}`)
  return fields
}

/**
 * Makes the servers replicas of the first, and the Sentinels watch it.
 * @param {RedisServer[]} servers
 * @param {RedisServer[]} sentinels
 */
async function watch(servers, sentinels) {
  const [master, ...replicas] = servers
  const { port } = /** @type {RedisServer} */ (master)
  await Promise.all(replicas.map((replica) => call(replica.port, 'REPLICAOF', '127.0.0.1', port)))
  await until('all replicas are online', async () => {
    const online = String(await call(port, 'INFO', 'replication')).match(/state=online/g) ?? []
    return online.length === replicas.length
  })
  const quorum = Math.floor(sentinels.length / 2) + 1
  await Promise.all(
    sentinels.map(async (sentinel) => {
      await call(sentinel.port, 'SENTINEL', 'MONITOR', name, '127.0.0.1', port, quorum)
      await call(
        sentinel.port,
        'SENTINEL',
        'SET',
        name,
        'down-after-milliseconds',
        500,
        'failover-timeout',
        2000,
      )
    }),
  )
  await Promise.all(
    sentinels.map((sentinel) =>
      until(`Sentinel ${sentinel.port} knows all`, async () => {
        const about = await aboutMaster(sentinel.port)
        const count = (/** @type {string} */ field) => Number(about.get(field))
        return (
          count('num-slaves') === replicas.length && count('num-other-sentinels') === sentinels.length - 1
        )
      }),
    ),
  )
}

module.exports = { startSentinel }
