// Starts a Redis Cluster for tests, and moves its slots.
const { launchAll, stopAll, until } = require('./launch.cjs')
const { serverBinary } = require('./redis.cjs')
const { ask, call } = require('./resp.cjs')

const SLOTS = 16_384

/** @typedef {import('./launch.cjs').RedisServer} RedisServer */
/** @typedef {{ id: string, master: number | undefined }} Place master: index of the node that it started as a replica of */
/** @typedef {RedisServer & Place} ClusterNode */

/**
 * Starts a cluster of private, empty servers on 127.0.0.1 that die with this process; ready when every node says so.
 * Replicas follow the masters in `nodes`, those of the first master first.
 * @param {object} [options]
 * @param {number} [options.masters]
 * @param {number} [options.replicas] of each master
 * @param {string[]} [options.args] further arguments of every server
 * @param {string} [options.binary] path of another server, default: that of `findRedisServer`
 */
async function startCluster({ masters = 3, replicas = 1, args = [], binary = serverBinary() } = {}) {
  const flags = [
    ...['--cluster-enabled', 'yes', '--cluster-node-timeout', '1000'],
    ...['--cluster-replica-validity-factor', '0', '--repl-diskless-sync-delay', '0'],
    ...args,
  ]
  const size = masters * (1 + replicas)
  const servers = await launchAll(Array(size).fill({ binary, args: flags, bus: true }))
  try {
    const nodes = await Promise.all(
      servers.map(async (server, index) => ({
        ...server,
        id: String(await call(server.port, 'CLUSTER', 'MYID')),
        master: index < masters ? undefined : Math.floor((index - masters) / replicas),
      })),
    )
    await join(nodes, masters)
    const startupNodes = nodes.map(({ port }) => ({ host: '127.0.0.1', port }))
    return { nodes, startupNodes, ...slots(nodes), stop: () => stopAll(nodes) }
  } catch (error) {
    await stopAll(servers)
    throw error
  }
}

/** @param {string | undefined} text @param {RegExp} what */
const count = (text, what) => text?.match(what)?.length ?? 0

/**
 * Makes a cluster of single nodes, by hand: faster than `redis-cli --cluster create`.
 * @param {ClusterNode[]} nodes
 * @param {number} masters
 */
async function join(nodes, masters) {
  const each = (/** @type {(node: ClusterNode, index: number) => Promise<unknown>} */ task) =>
    Promise.all(nodes.map(task))
  await each(async ({ port }, index) => {
    await call(port, 'CLUSTER', 'SET-CONFIG-EPOCH', index + 1)
    if (index >= masters) return
    const [from, to] = [index, index + 1].map((part) => Math.ceil((part * SLOTS) / masters))
    await call(port, 'CLUSTER', 'ADDSLOTSRANGE', Number(from), Number(to) - 1)
  })
  // Everyone meets all before it, so that nobody waits for gossip.
  await each(async ({ port }, index) => {
    for (const other of nodes.slice(0, index)) await call(port, 'CLUSTER', 'MEET', '127.0.0.1', other.port)
  })
  await each(({ port, master }) =>
    until(`node ${port} knows its master`, async () => {
      if (master === undefined) return true
      return call(port, 'CLUSTER', 'REPLICATE', /** @type {ClusterNode} */ (nodes[master]).id)
    }),
  )
  const replicas = nodes.length - masters
  await each(({ port, url, master }) =>
    until(`node ${port} knows the whole cluster`, async () => {
      const questions = [
        ['CLUSTER', 'INFO'],
        ['CLUSTER', 'NODES'],
        ['INFO', 'replication'],
      ]
      const [info, table, replication] = (await ask(url, questions, 1000)).map(String)
      return (
        info?.includes('cluster_state:ok') &&
        nodes.every(({ id }) => table?.includes(id)) &&
        count(table, / (myself,)?slave .* connected$/gm) === replicas &&
        count(replication, /state=online/g) === (master === undefined ? replicas / masters : 0) &&
        count(replication, /master_link_status:up/g) === (master === undefined ? 0 : 1)
      )
    }),
  )
}

/**
 * The master of a slot in a table of CLUSTER NODES, and the epoch of that knowledge.
 * @param {string} table
 * @param {number} slot
 */
function ownerIn(table, slot) {
  for (const line of table.split('\n')) {
    const [, address, , , , , epoch, , ...ranges] = line.split(' ')
    const owns = ranges.some((range) => {
      const [first = Number.NaN, last = first] = range.split('-').map(Number)
      return first <= slot && slot <= last
    })
    if (owns) return { port: Number(address?.match(/:(\d+)@/)?.[1]), epoch: Number(epoch) }
  }
  return { port: undefined, epoch: 0 }
}

/**
 * What tells and changes where slots are.
 * @param {ClusterNode[]} nodes
 */
function slots(nodes) {
  /** @param {number} index */
  const node = (index) => {
    const found = nodes[index]
    if (!found) throw new Error(`There is no node ${index}.`)
    return found
  }

  /**
   * The master of a slot as each node that answers knows it, the newest knowledge first.
   * @param {number} slot
   */
  const views = async (slot) => {
    const answers = await Promise.allSettled(nodes.map(({ url }) => ask(url, [['CLUSTER', 'NODES']], 1000)))
    const known = answers.flatMap((answer) =>
      answer.status === 'fulfilled' ? [ownerIn(String(answer.value[0]), slot)] : [],
    )
    return known.sort((a, b) => b.epoch - a.epoch)
  }

  /**
   * The node that is the master of a slot, or of a key's: while that changes, as the best informed node knows it.
   * @param {number | string} slotOrKey
   */
  async function masterOf(slotOrKey) {
    const slotOf = (/** @type {ClusterNode} */ { port }) => call(port, 'CLUSTER', 'KEYSLOT', slotOrKey)
    const slot = typeof slotOrKey === 'number' ? slotOrKey : Number(await Promise.any(nodes.map(slotOf)))
    const [newest] = await views(slot)
    const found = nodes.find(({ port }) => port === newest?.port)
    if (!found) throw new Error(`No node is the master of ${slotOrKey}.`)
    return found
  }

  /**
   * Opens the move of a slot: from now on its master answers ASK for a key that it has not got.
   * @param {number} slot
   * @param {number} to index of the master that is to have it
   */
  async function beginMigration(slot, to) {
    const source = await masterOf(slot)
    const move = async (
      /** @type {ClusterNode} */ at,
      /** @type {string} */ how,
      /** @type {ClusterNode} */ other,
    ) =>
      // A node refuses while it has not heard yet that the other has become a master.
      until(`node ${at.port} takes part`, () => call(at.port, 'CLUSTER', 'SETSLOT', slot, how, other.id))
    await move(node(to), 'IMPORTING', source)
    await move(source, 'MIGRATING', node(to))
  }

  /**
   * Moves keys of a slot whose move was begun, all or at most `count`.
   * @param {number} slot
   * @param {number} to
   */
  async function moveKeys(slot, to, count = Number.POSITIVE_INFINITY) {
    const { port } = await masterOf(slot)
    for (let left = count; left > 0; ) {
      const reply = await call(port, 'CLUSTER', 'GETKEYSINSLOT', slot, Math.min(left, 1000))
      const keys = /** @type {string[]} */ (reply)
      if (keys.length === 0) return
      await call(port, 'MIGRATE', '127.0.0.1', node(to).port, '', 0, 5000, 'KEYS', ...keys)
      left -= keys.length
    }
  }

  /**
   * Moves the keys that are left of a slot whose move was begun, and closes it; resolves once all that live know.
   * @param {number} slot
   * @param {number} to
   */
  async function finishMigration(slot, to) {
    await moveKeys(slot, to)
    const source = await masterOf(slot)
    for (const { port } of [node(to), source])
      await call(port, 'CLUSTER', 'SETSLOT', slot, 'NODE', node(to).id)
    await until(`all know that slot ${slot} has moved`, async () => {
      const known = await views(slot)
      return known.every(({ port }) => port === node(to).port)
    })
  }

  /**
   * Moves a slot with its keys to another master.
   * @param {number} slot
   * @param {number} to
   */
  async function moveSlot(slot, to) {
    await beginMigration(slot, to)
    await finishMigration(slot, to)
  }

  return { masterOf, beginMigration, moveKeys, finishMigration, moveSlot }
}

module.exports = { startCluster }
