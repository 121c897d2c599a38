// The servers that faults are played on. A lab says how a client reaches it, and proves that a fresh one is served.
const { startCluster } = require('../servers/cluster.cjs')
const { until } = require('../servers/launch.cjs')
const { startRedis } = require('../servers/redis.cjs')
const { ask, call } = require('../servers/resp.cjs')
const { startSentinel } = require('../servers/sentinel.cjs')
const { startProxy } = require('../servers/tcp-proxy.cjs')

/** @typedef {import('../servers/launch.cjs').RedisServer} RedisServer */

/**
 * Writes over a connection of its own.
 * @param {number} port
 * @param {number} timeoutMs
 */
async function write(port, timeoutMs, key = 'fresh') {
  const [reply] = await ask(`redis://127.0.0.1:${port}`, [['SET', key, '1', 'PX', '60000']], timeoutMs)
  if (reply instanceof Error) throw reply
}

/**
 * One server.
 * @param {string[]} [args] of the server
 */
async function standalone(args = []) {
  let server = await startRedis({ args })
  const { port, url } = server
  return {
    port,
    connection: { url },
    served: (/** @type {number} */ timeoutMs) => write(port, timeoutMs),
    kill: () => server.stop(),
    restart: async () => {
      server = await startRedis({ port, args })
    },
    signal: (/** @type {NodeJS.Signals} */ name) => process.kill(server.pid, name),
    stop: () => server.stop(),
  }
}

/** One server behind a proxy. */
async function proxied() {
  const server = await startRedis()
  const proxy = await startProxy(server.port)
  return {
    port: server.port,
    proxy,
    connection: { url: proxy.url },
    served: (/** @type {number} */ timeoutMs) => write(proxy.port, timeoutMs),
    stop: async () => {
      await proxy.stop()
      await server.stop()
    },
  }
}

/** A master, which the client is told of, and its replica, which it is not. */
async function pair() {
  const [master, replica] = await Promise.all([startRedis(), startRedis()])
  await call(replica.port, 'REPLICAOF', '127.0.0.1', master.port)
  await until('the replica is online', async () => {
    return String(await call(replica.port, 'INFO', 'replication')).includes('master_link_status:up')
  })
  return {
    port: master.port,
    replicaPort: replica.port,
    connection: { url: master.url },
    served: (/** @type {number} */ timeoutMs) => write(master.port, timeoutMs),
    stop: async () => {
      await Promise.all([master.stop(), replica.stop()])
    },
  }
}

/** A master and its replica, watched by three Sentinels. */
async function sentinel() {
  const { servers, sentinels, name, masterPort, stop } = await startSentinel()
  const [master] = /** @type {[RedisServer]} */ (servers)
  /** @type {RedisServer | undefined} */
  let restarted
  return {
    connection: { sentinels, name },
    served: async (/** @type {number} */ timeoutMs) => write(await masterPort(), timeoutMs),
    kill: () => master.stop(),
    restart: async () => {
      restarted = await startRedis({ port: master.port })
    },
    stop: async () => {
      await restarted?.stop()
      await stop()
    },
  }
}

/** Three masters with a replica each. */
async function cluster() {
  const { nodes, startupNodes, stop, ...slots } = await startCluster()
  const keys = await Promise.all(nodes.slice(0, 3).map(keyOf))
  return {
    nodes,
    ...slots,
    connection: { startupNodes },
    served: async (/** @type {number} */ timeoutMs) => {
      const writes = keys.map(async (at) => {
        try {
          await write(at.port, timeoutMs, at.key)
        } catch (error) {
          // The next one goes where the key is by now.
          at.port = (await slots.masterOf(at.key)).port
          throw error
        }
      })
      await Promise.all(writes)
    },
    kill: () => /** @type {RedisServer} */ (nodes[0]).stop(),
    stop,
  }
}

/**
 * A key that a master has.
 * @param {RedisServer} master
 */
async function keyOf({ port }) {
  for (let i = 0; ; i += 1) {
    const key = `fresh-${i}`
    const moved = await write(port, 1000, key).catch((error) => error)
    if (!moved) return { key, port }
  }
}

module.exports = { standalone, proxied, pair, sentinel, cluster }
