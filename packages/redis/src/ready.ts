import { type ErrorCode, resolvePolicy, SluiceError } from '@sluice/core'
import type { Redis } from 'ioredis'
import { isOfReplica, isRefusal } from './client.js'
import { type Connection, late } from './connection.js'
import type { Decider } from './decider.js'
import type { Server } from './topology.js'

/** The oldest version that runs the script. */
const oldest = [6, 2] as const

/** A policy whose keys are gone again after a second. */
const probe = resolvePolicy({ name: 'ready', algorithm: 'fixed-window', limit: 1_000_000, window: 1 })

/** How many keys are tried to find one that a server decides for: enough for a server of one slot in 16,384. */
const mostTries = 200_000

type Warn = (code: ErrorCode, message: string) => void

/**
 * Waits for the connection, then checks every server that decides.
 * @throws SluiceError with the code of what is wrong, or `SLUICE_STORE_TIMEOUT`
 */
export async function checkServers(
  connection: Connection,
  decider: Decider,
  timeoutMs: number,
  warn: Warn,
): Promise<void> {
  const deadlineMs = performance.now() + timeoutMs
  const { topology } = connection
  const check = async (server: Server): Promise<void> => {
    await checkInfo(server.client, topology.sharded, warn)
    if (topology.sharded) await checkCluster(server.client, warn)
    const key = keyOf(server, decider)
    if (key !== undefined) await checkScript(decider, key, deadlineMs - performance.now())
  }
  let timer: NodeJS.Timeout | undefined
  try {
    await connection.connected(timeoutMs)
    const over = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(late(timeoutMs)), deadlineMs - performance.now())
    })
    await Promise.race([Promise.all(topology.masters().map(check)), over])
  } catch (error) {
    if (error instanceof SluiceError) throw error
    if (isRefusal(error)) throw refused(error as Error)
    throw new SluiceError('SLUICE_STORE_FAILED', `Redis failed: ${(error as Error).message}`, {
      cause: error,
    })
  } finally {
    clearTimeout(timer)
  }
}

async function checkInfo(client: Redis, sharded: boolean, warn: Warn): Promise<void> {
  const info = await told(client.info())
  const field = (name: string): string => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1] ?? ''
  const at = nameOf(client)
  const version = field('redis_version')
  if (!version) {
    warn(
      'SLUICE_REDIS_UNCHECKED',
      `the Redis at ${at} does not tell its version, role and eviction policy: allow its user the command INFO, or see to them yourself`,
    )
    return
  }
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major < oldest[0] || (major === oldest[0] && minor < oldest[1])) {
    throw new SluiceError(
      'SLUICE_REDIS_VERSION',
      `The Redis at ${at} is version ${version}. Expected ${oldest.join('.')} or newer`,
    )
  }
  if (field('role') !== 'master') throw replica(at)
  if (!sharded && field('cluster_enabled') === '1') {
    throw new SluiceError(
      'SLUICE_REDIS_CLUSTER',
      `The Redis at ${at} is a node of a Cluster, which decides for some keys only. Expected a client of the whole, \`new Cluster(nodes)\``,
    )
  }
  const policy = field('maxmemory_policy')
  if (field('maxmemory') !== '0' && /^(allkeys|volatile)-/.test(policy)) {
    warn(
      'SLUICE_REDIS_EVICTION',
      `the Redis at ${at} drops keys when its memory is full (maxmemory-policy ${policy}), and a limiter key that is dropped starts afresh: set noeviction, or give limiters a Redis of their own`,
    )
  }
}

async function checkCluster(client: Redis, warn: Warn): Promise<void> {
  const info = await told(client.cluster('INFO') as Promise<string>)
  const [, state] = /^cluster_state:(\w+)/m.exec(info) ?? []
  if (state === undefined) {
    warn(
      'SLUICE_REDIS_UNCHECKED',
      `the Redis at ${nameOf(client)} does not tell the state of its Cluster: allow its user the command CLUSTER INFO`,
    )
  } else if (state !== 'ok') {
    throw new SluiceError(
      'SLUICE_REDIS_CLUSTER',
      `The Cluster is in state ${state}, as ${nameOf(client)} sees it. Expected ok: every slot served by a master`,
    )
  }
}

async function checkScript(decider: Decider, key: string, timeoutMs: number): Promise<void> {
  try {
    await decider.decide([{ key, policy: probe, least: 1, most: 1 }], { timeoutMs }, true)
  } catch (error) {
    const { cause } = error as SluiceError
    if (!(cause instanceof Error)) throw error
    if (isOfReplica(cause)) throw replica('the other end')
    if (!isRefusal(cause)) throw error
    throw refused(cause)
  }
}

function refused(cause: Error): SluiceError {
  return new SluiceError(
    'SLUICE_REDIS_SCRIPTS',
    `Redis does not run the script: ${cause.message}. Expected a user who may call EVALSHA, EVAL, and what the script calls, on keys of this prefix`,
    { cause },
  )
}

/** What a server tells, or nothing if it will not. */
async function told(answer: Promise<string>): Promise<string> {
  return answer.catch((error: Error) => {
    if (isRefusal(error)) return ''
    throw error
  })
}

/**
 * A key that no user's text can make, which the server decides for; undefined if it decides for none: braces in the
 * client's `keyPrefix` put all keys into one slot.
 */
function keyOf(server: Server, decider: Decider): string | undefined {
  const keyAt = (i: number): string => `1:{~${i}}:-:${probe.keySuffix}`
  const slotAt = (i: number): number => decider.slotOf(keyAt(i))
  const inOneSlot = [1, 2, 3].every((i) => slotAt(i) === slotAt(0))
  for (let i = 0; i < (inOneSlot ? 1 : mostTries); i++) {
    if (server.decidesFor(slotAt(i))) return keyAt(i)
  }
  return undefined
}

function nameOf({ options, stream }: Redis): string {
  // Where Sentinels are asked, the options name no server.
  const { host, port } = options.sentinels ? { host: stream.remoteAddress, port: stream.remotePort } : options
  return options.path ?? `${host}:${port}`
}

function replica(at: string): SluiceError {
  return new SluiceError(
    'SLUICE_REDIS_REPLICA',
    `The Redis at ${at} is a replica, which cannot count. Expected a master`,
  )
}
