// The faults of the matrix, as data: on which servers, how they begin and end, and what they may cost.
const { call } = require('../servers/resp.cjs')
const labs = require('./labs.cjs')
const { keysOf } = require('./load.cjs')

/**
 * @typedef {object} Lab
 * @property {import('./run.cjs').Connection} connection
 * @property {(timeoutMs: number) => Promise<unknown>} served resolves once a fresh connection has written
 * @property {() => Promise<void>} stop
 */

/**
 * @template {Lab} L
 * @typedef {object} Fault
 * @property {string} name
 * @property {() => Promise<L>} lab
 * @property {(lab: L, lastsMs: number) => End} begin returns what ends it, which may say how often it struck
 * @property {'none' | 'some' | 'all'} misses which decisions the store cannot make meanwhile: `all` is an outage
 * @property {number} [lives] how often the counts begin at nothing: default 1
 * @property {boolean} [takenOver] whether another server takes over, which may lack the last writes
 */
/** @typedef {Strike | Promise<Strike>} End */
/** @typedef {void | (() => unknown)} Strike */

/**
 * Checks a fault against its own servers.
 * @template {Lab} L
 * @param {Fault<L>} fault
 * @returns {Fault<any>}
 */
const fault = (fault) => fault

const faults = [
  fault({
    name: 'no fault',
    lab: labs.standalone,
    begin: () => {},
    misses: 'none',
  }),
  fault({
    name: 'connections refused',
    lab: labs.proxied,
    begin: ({ proxy }) => {
      proxy.refuse()
      return proxy.pass
    },
    misses: 'all',
  }),
  fault({
    name: 'traffic held',
    lab: labs.proxied,
    begin: ({ proxy }) => {
      proxy.hold()
      return proxy.pass
    },
    misses: 'all',
  }),
  fault({
    name: 'traffic delayed by 250 ms',
    lab: labs.proxied,
    begin: ({ proxy }) => {
      proxy.delay(250)
      return proxy.pass
    },
    misses: 'all',
  }),
  fault({
    name: 'cut in mid-reply',
    lab: labs.proxied,
    begin: ({ proxy }) => {
      proxy.cutReplies({ half: true })
      return proxy.pass
    },
    misses: 'all',
  }),
  fault({
    name: 'killed, restarted empty',
    lab: labs.standalone,
    begin: async ({ kill, restart }) => {
      await kill()
      return restart
    },
    misses: 'all',
    lives: 2,
  }),
  fault({
    name: 'SCRIPT FLUSH every 20 ms',
    lab: labs.standalone,
    begin: ({ port }) => repeat(20, () => call(port, 'SCRIPT', 'FLUSH')),
    misses: 'none',
  }),
  fault({
    name: 'SIGSTOP, SIGCONT',
    lab: labs.standalone,
    begin: ({ signal }) => {
      signal('SIGSTOP')
      return () => signal('SIGCONT')
    },
    misses: 'all',
  }),
  fault({
    name: 'long script, killed',
    // So soon, others are told that a script is running, and need not wait.
    lab: () => labs.standalone(['--lua-time-limit', '1000']),
    begin: ({ port }) => {
      const script = call(port, 'EVAL', 'while true do end', 0).catch(() => {})
      return async () => {
        await call(port, 'SCRIPT', 'KILL')
        await script
      }
    },
    misses: 'all',
  }),
  fault({
    name: 'CLIENT PAUSE',
    lab: labs.standalone,
    // It ends by itself: nobody could be heard who wanted to end it.
    begin: async ({ port }, lastsMs) => {
      await call(port, 'CLIENT', 'PAUSE', Math.round(lastsMs))
    },
    misses: 'all',
  }),
  fault({
    name: 'memory full',
    lab: () => labs.standalone(['--maxmemory', '16mb', '--maxmemory-policy', 'noeviction']),
    begin: ({ port }) => fill(port),
    // A denial writes nothing, so that the store goes on to deny.
    misses: 'some',
  }),
  fault({
    name: 'master demoted, connections left open',
    lab: labs.pair,
    begin: async ({ port, replicaPort }) => {
      await call(port, 'REPLICAOF', '127.0.0.1', replicaPort)
      await call(replicaPort, 'REPLICAOF', 'NO', 'ONE')
      return () => call(port, 'REPLICAOF', 'NO', 'ONE')
    },
    misses: 'all',
    takenOver: true,
  }),
  fault({
    name: 'Sentinel: master killed, back as a replica',
    lab: labs.sentinel,
    begin: async ({ kill, restart }) => {
      await kill()
      return restart
    },
    misses: 'all',
    takenOver: true,
  }),
  fault({
    name: 'Cluster: one master of three killed',
    lab: labs.cluster,
    begin: ({ kill }) => kill(),
    misses: 'some',
    takenOver: true,
  }),
  fault({
    name: 'Cluster: slots migrating',
    lab: labs.cluster,
    begin: async (lab) => {
      const keys = [...new Set(keysOf(2500))]
      let turn = 0
      return repeat(20, () => migrate(lab, /** @type {string} */ (keys[turn++ % keys.length])))
    },
    misses: 'none',
  }),
]

/**
 * Does something again and again until told to stop, which it does at the end of a turn and says how many there were.
 * @param {number} pauseMs
 * @param {() => Promise<unknown>} turn
 */
function repeat(pauseMs, turn) {
  let going = true
  const turns = (async () => {
    let count = 0
    for (; going; count += 1) {
      await turn()
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
    return count
  })()
  return () => {
    going = false
    return turns
  }
}

/**
 * Fills the memory with keys that are none of the store's, to well above its limit: asking for them takes little.
 * @param {number} port
 */
async function fill(port) {
  /** @type {string[]} */
  const keys = []
  for (let full = false; !full; ) {
    const key = `other-${keys.length}`
    full = await call(port, 'SETRANGE', key, 200_000, 'x').then(
      () => false,
      (error) => error.message.startsWith('OOM'),
    )
    keys.push(key)
  }
  return async () => {
    await call(port, 'DEL', ...keys)
  }
}

/**
 * Moves the slot of a key to the next master, one of its keys after the other.
 * @param {Awaited<ReturnType<typeof labs.cluster>>} lab
 * @param {string} key
 */
async function migrate({ nodes, masterOf, beginMigration, moveKeys, finishMigration }, key) {
  const [{ port }] = /** @type {[{ port: number }]} */ (/** @type {unknown} */ (nodes))
  const slot = Number(await call(port, 'CLUSTER', 'KEYSLOT', `{${key}}`))
  const from = nodes.indexOf(await masterOf(slot))
  const to = (from + 1) % 3
  await beginMigration(slot, to)
  for (let i = 0; i < 6; i += 1) await moveKeys(slot, to, 1)
  await finishMigration(slot, to)
}

module.exports = { faults }
