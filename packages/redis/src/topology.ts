import type { Cluster, Redis } from 'ioredis'
import { ServerClock } from './server-clock.js'
import { slotOf } from './slot.js'

/** A server that decides. */
export interface Server {
  readonly client: Redis
  decidesFor(slot: number): boolean
}

/** Where keys live behind a client, and whose clock counts there. */
export interface Topology {
  /** Whether keys of different slots live on different servers, so that no call can have both. */
  readonly sharded: boolean
  /** The slot of a key that is given to the client like this. */
  slotOf(key: string): number
  /** The clock of the server that decides for the keys of a slot. */
  clockOf(slot: number): ServerClock
  masters(): readonly Server[]
  connections(): readonly Redis[]
  /** Asks what has to be known of a new connection before its first call. */
  greet(): Promise<void>
  /** Hears that a call failed. */
  failed(): void
  /** Leaves the client as it was. */
  close(): void
}

/** One server, or the master that Sentinels name. */
export function singleServer(client: Redis): Topology {
  const clock = new ServerClock()
  const connections = [client]
  return {
    sharded: false,
    slotOf: () => 0,
    clockOf: () => clock,
    masters: () => [{ client, decidesFor: () => true }],
    connections: () => connections,
    async greet() {
      clock.forget()
      const [seconds, microseconds] = await client.time()
      clock.heard(Number(seconds) * 1_000_000 + Number(microseconds))
    },
    failed() {},
    close() {},
  }
}

/** How soon after another the slots are asked for again, in milliseconds. */
const refreshEveryMs = 500

/**
 * The masters of a Cluster, each with a clock of its own. A node's clock is unknown until its first answer.
 * @param owned whether the client is the store's own, which keeps the slots up to date
 */
export function clusterNodes(client: Cluster, owned: boolean): Topology {
  const keyPrefix = client.options.keyPrefix ?? ''
  const clocks = new Map<string, ServerClock>()
  let refreshedMs = Number.NEGATIVE_INFINITY
  // A node that left and comes again may be another machine.
  const forget = (node: Redis) => clocks.delete(nameOf(node))
  client.on('-node', forget)
  return {
    sharded: true,
    slotOf: (key) => slotOf(keyPrefix + key),
    clockOf(slot) {
      const master = client.slots[slot]?.[0] ?? ''
      let clock = clocks.get(master)
      if (!clock) {
        clock = new ServerClock()
        clocks.set(master, clock)
      }
      return clock
    },
    masters() {
      const names = new Set(client.slots.map((slot) => slot?.[0]))
      return client
        .nodes('master')
        .filter((node) => names.has(nameOf(node)))
        .map((node) => ({
          client: node,
          decidesFor: (slot) => client.slots[slot]?.[0] === nameOf(node),
        }))
    },
    connections: () => client.nodes(),
    async greet() {},
    failed() {
      // A node that is down or cut off tells no new master; the others do.
      const nowMs = performance.now()
      if (!owned || client.status !== 'ready' || nowMs - refreshedMs < refreshEveryMs) return
      refreshedMs = nowMs
      client.refreshSlotsCache()
    },
    close: () => client.off('-node', forget),
  }
}

/** As the slots of a Cluster name it. */
function nameOf({ options }: Redis): string {
  return `${options.host}:${options.port}`
}
