import { SluiceError, show } from '@sluice/core'
import type { Cluster, ClusterOptions, Redis, RedisOptions } from 'ioredis'

/** A client of ioredis: standalone, through Sentinels, or of a Cluster. */
export type Client = Redis | Cluster

/** How long a server may be silent before its connection is given up, in milliseconds. */
const silenceMs = 1000

/** A connection attempt follows the one before within this, in milliseconds. */
const retryMs = (attempt: number): number => Math.min(50 * attempt, 500)

const connectionOptions: RedisOptions = {
  enableAutoPipelining: false,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  // The budget of a decision is the limiter's; a timeout of the client's own would also end the first question.
  commandTimeout: undefined,
  connectTimeout: silenceMs,
  // It would end a sound connection after a pause of the event loop; see SilenceWatch.
  socketTimeout: undefined,
  maxLoadingRetryTime: 500,
  // A master that became a replica keeps its connections: the address may lead to the new master by now.
  reconnectOnError: (error) => isOfReplica(error),
  // The client holds a process open for this long after the end of a connection that was lost already.
  disconnectTimeout: 100,
}

const serverOptions: RedisOptions = {
  ...connectionOptions,
  lazyConnect: false,
  enableOfflineQueue: false,
  retryStrategy: retryMs,
  role: 'master',
  failoverDetector: true,
  sentinelRetryStrategy: retryMs,
  sentinelReconnectStrategy: retryMs,
  sentinelCommandTimeout: silenceMs / 2,
}

const clusterOptions: ClusterOptions = {
  lazyConnect: false,
  enableAutoPipelining: false,
  shardedSubscribers: false,
  scaleReads: 'master',
  // Without this queue the first calls to each node fail, since they come before its connection stands. Calls do not
  // wait in it through an outage: none is made while the Cluster is away, and a node that cannot be reached is given up.
  enableOfflineQueue: true,
  // What was sent is never sent again: a lost connection or a Cluster that is down ends the call at once.
  retryDelayOnFailover: 0,
  retryDelayOnClusterDown: 0,
  // Nothing was done when a server answers with one of these, so that the call can go on to another.
  maxRedirections: 3,
  retryDelayOnMoved: 0,
  retryDelayOnTryAgain: 0,
  // Slots are asked for when calls fail: the client's own timer survives its closing.
  slotsRefreshInterval: 0,
  slotsRefreshTimeout: silenceMs / 2,
  clusterNodeRetryStrategy: null,
}

/**
 * A client of the store's own: it fails at once where a user's may wait, so that a decision keeps its budget, and
 * never sends a command twice, which would charge twice.
 * @param onFailure hears why a Cluster could not be connected, of which there may be no event
 */
export function duplicateOf(client: Client, onFailure: (error: Error) => void): Client {
  if (!isCluster(client)) return client.duplicate(serverOptions)
  const redisOptions = { ...client.options.redisOptions, ...connectionOptions }
  const clusterRetryStrategy = (attempt: number, reason?: Error): number => {
    if (reason) onFailure(reason)
    return retryMs(attempt)
  }
  return client.duplicate([], { ...clusterOptions, clusterRetryStrategy, redisOptions })
}

export function isCluster(client: Client): client is Cluster {
  return client.isCluster
}

/** Whether a server refused because it is a replica. Redis 6.2 puts the reason into the middle of a script's error. */
export function isOfReplica(error: Error): boolean {
  return /(^|-)(READONLY|MASTERDOWN) /.test(error.message)
}

/** Whether a server understood a command and will not run it, now or later. */
export function isRefusal(error: unknown): boolean {
  return error instanceof Error && /^(NOPERM|ERR) /.test(error.message)
}

/**
 * Whether a call that failed has charged nothing for certain, though parts of it may pass in calls of their own: the
 * server refused it for its keys, or refused its first write. Redis 6.2 puts the reason into the middle of a script's error.
 */
export function isUncharged(error: unknown): boolean {
  const { message = '' } = ((error as Error).cause ?? {}) as Partial<Error>
  return (
    /^(CROSSSLOT|TRYAGAIN) |^NOPERM (?!.*script: )|^Too many Cluster redirections/.test(message) ||
    /(^|-)(OOM|MISCONF|NOREPLICAS) /.test(message)
  )
}

/** @throws SluiceError `SLUICE_BAD_CLIENT` for anything but a client of ioredis */
export function checkClient(client: unknown): asserts client is Client {
  const { duplicate, callBuffer, status, isCluster, nodes } = (client ?? {}) as Partial<Redis & Cluster>
  if (
    typeof duplicate !== 'function' ||
    typeof callBuffer !== 'function' ||
    typeof status !== 'string' ||
    (isCluster && typeof nodes !== 'function')
  ) {
    throw new SluiceError(
      'SLUICE_BAD_CLIENT',
      `The client of RedisStore is ${show(client)}. Expected an ioredis client, such as \`new Redis(url)\` or \`new Cluster(nodes)\``,
    )
  }
}
