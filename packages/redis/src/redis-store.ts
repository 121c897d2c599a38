import {
  badOption,
  type Check,
  type ConsumeOptions,
  checkLogger,
  checkWhole,
  type Logger,
  type Refund,
  refuseUnknownOptions,
  type Store,
  type Verdict,
} from '@sluice/core'
import type { Cluster, Redis } from 'ioredis'
import { checkClient } from './client.js'
import { Connection } from './connection.js'
import { Decider } from './decider.js'
import { checkPrefix } from './prefix.js'
import { checkServers } from './ready.js'

/** Options of {@link RedisStore}. */
export interface RedisStoreOptions {
  /** The beginning of every key: 1 to 64 of `A-Z a-z 0-9 _ . : -`. Default `'sluice'`. */
  prefix?: string
  /**
   * Whether to open a connection of its own, set to fail fast, never to send twice and to ask masters only. Default
   * true. With false the given client is used as it is, its queues, retries and re-sent commands included.
   */
  duplicate?: boolean
  /** Where {@link RedisStore.ready} writes its warnings. Default `console`. */
  logger?: Logger
}

/**
 * Counts in Redis or Valkey, for any number of processes: one script, one round trip and one clock, the server's, for
 * each decision, however many policies it has.
 * @example
 * const store = new RedisStore(new Redis(process.env.REDIS_URL))
 */
export class RedisStore implements Store {
  readonly shared = true
  readonly #prefix: string
  readonly #connection: Connection
  readonly #decider: Decider
  readonly #logger: Logger
  /** What `ready()` has warned of. */
  readonly #warned = new Set<string>()

  /**
   * @param client an ioredis client: standalone, with Sentinels, or a Cluster
   * @throws SluiceError `SLUICE_BAD_CLIENT` for any other client
   */
  constructor(client: Redis | Cluster, options: RedisStoreOptions = {}) {
    checkClient(client)
    refuseUnknownOptions('RedisStore', options, ['prefix', 'duplicate', 'logger'])
    const { prefix, duplicate = true, logger = console } = options
    this.#prefix = checkPrefix(prefix)
    if (typeof duplicate !== 'boolean') throw badOption('duplicate', duplicate, 'true or false')
    this.#logger = checkLogger(logger)
    this.#connection = new Connection(client, duplicate)
    this.#decider = new Decider(this.#connection, this.#prefix)
  }

  /**
   * Charges all checks or none. In a Cluster, checks whose keys live in different slots are decided side by side, and
   * what one slot grants is given back when another denies or fails: meanwhile others may be denied that quota, and a
   * process that dies in between leaves it charged; never is more admitted.
   * @throws SluiceError `SLUICE_STORE_FAILED` when the server failed or is away, `SLUICE_STORE_TIMEOUT` when it could
   *   not be reached within the budget, `SLUICE_CROSS_SLOT_QUEUE` for a leaky bucket beside a check of another slot
   */
  consume(checks: readonly Check[], options: ConsumeOptions): Promise<readonly Verdict[]> {
    return this.#decider.decide(checks, options, true)
  }

  peek(checks: readonly Check[], options: ConsumeOptions): Promise<readonly Verdict[]> {
    return this.#decider.decide(checks, options, false)
  }

  refund(refunds: readonly Refund[], options: ConsumeOptions): Promise<void> {
    return this.#decider.refund(refunds, options)
  }

  reset(keys: readonly string[]): Promise<void> {
    return this.#connection.delete(keys.map((key) => this.#prefix + key))
  }

  /**
   * Waits for the connection, then checks that every server which decides is fit to: its version, its role, and that
   * it runs the script (which writes one key for a second). Optional: a store works without it, and goes on trying
   * after it has failed.
   *
   * Warns once, through `logger`, of an eviction policy that may drop limiter keys (`SLUICE_REDIS_EVICTION`), and of a
   * server that does not tell about itself (`SLUICE_REDIS_UNCHECKED`).
   * @param options `timeoutMs`: whole milliseconds from 1 to 600,000. Default 10,000.
   * @throws SluiceError `SLUICE_STORE_TIMEOUT` or `SLUICE_STORE_FAILED` when the server cannot be asked;
   *   `SLUICE_REDIS_VERSION`, `SLUICE_REDIS_REPLICA`, `SLUICE_REDIS_CLUSTER`, `SLUICE_REDIS_SCRIPTS`
   */
  async ready({ timeoutMs = 10_000 }: { timeoutMs?: number } = {}): Promise<void> {
    checkWhole('timeoutMs', timeoutMs, 1, 600_000, 'whole milliseconds')
    await checkServers(this.#connection, this.#decider, timeoutMs, (code, message) => {
      if (this.#warned.has(message)) return
      this.#warned.add(message)
      this.#logger.warn(`sluice: ${message} (${code})`)
    })
  }

  /** Closes the store's own connection; a client used with `duplicate: false` stays open. Idempotent. */
  async close(): Promise<void> {
    this.#connection.close()
  }
}
