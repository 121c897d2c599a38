import {
  badOption,
  type Check,
  type ConsumeOptions,
  type Refund,
  refuseUnknownOptions,
  SluiceError,
  type Store,
  show,
  type Verdict,
} from '@sluice/core'
import type { Redis } from 'ioredis'
import { Connection, duplicateFor } from './connection.js'
import { decodeReply, encodeCall, encodeRefund } from './wire.js'

/** Options of {@link RedisStore}. */
export interface RedisStoreOptions {
  /** The beginning of every key: 1 to 64 of `A-Z a-z 0-9 _ . : -`. Default `'sluice'`. */
  prefix?: string
  /**
   * Whether to open a connection of its own, set to fail fast and never to send twice. Default true. With false the
   * given client is used as it is, its queues and retries included.
   */
  duplicate?: boolean
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

  /**
   * @param client an ioredis client (standalone or Sentinel)
   * @throws SluiceError `SLUICE_BAD_CLIENT` for any other client
   */
  constructor(client: Redis, options: RedisStoreOptions = {}) {
    checkClient(client)
    refuseUnknownOptions('RedisStore', options, ['prefix', 'duplicate'])
    const { prefix = 'sluice', duplicate = true } = options
    if (typeof prefix !== 'string' || !/^[\w.:-]{1,64}$/.test(prefix)) {
      throw badOption('prefix', prefix, '1 to 64 of the characters A-Z a-z 0-9 _ . : -')
    }
    if (typeof duplicate !== 'boolean') throw badOption('duplicate', duplicate, 'true or false')
    this.#prefix = `${prefix}:`
    this.#connection = new Connection(duplicate ? duplicateFor(client) : client, duplicate)
  }

  consume(checks: readonly Check[], options: ConsumeOptions): Promise<readonly Verdict[]> {
    return this.#decide(checks, options, true)
  }

  peek(checks: readonly Check[], options: ConsumeOptions): Promise<readonly Verdict[]> {
    return this.#decide(checks, options, false)
  }

  async refund(refunds: readonly Refund[], options: ConsumeOptions): Promise<void> {
    await this.#run(refunds, options, (notAfterUs) => encodeRefund(refunds, notAfterUs))
  }

  async reset(keys: readonly string[]): Promise<void> {
    await this.#connection.delete(keys.map((key) => this.#prefix + key))
  }

  async close(): Promise<void> {
    this.#connection.close()
  }

  #decide(checks: readonly Check[], options: ConsumeOptions, charge: boolean): Promise<readonly Verdict[]> {
    return this.#run(checks, options, (notAfterUs) => encodeCall(checks, charge, notAfterUs))
  }

  async #run(
    parts: readonly { readonly key: string }[],
    { timeoutMs }: ConsumeOptions,
    encode: (notAfterUs: number) => string,
  ): Promise<readonly Verdict[]> {
    const keys = parts.map(({ key }) => this.#prefix + key)
    const deadlineMs = performance.now() + timeoutMs
    // A server whose clock was set forward finds the first call late; its reply tells its clock, and the second fits.
    do {
      const reply = await this.#connection.run(keys, () => {
        const leftUs = Math.floor((deadlineMs - performance.now()) * 1000)
        // A call that waited for the connection for too long is not sent at all.
        if (leftUs <= 0) throw late(timeoutMs)
        return encode(this.#connection.serverUs() + leftUs)
      })
      const { atUs, verdicts } = decodeReply(reply, parts.length)
      this.#connection.heard(atUs)
      if (verdicts) return verdicts
    } while (performance.now() < deadlineMs)
    throw late(timeoutMs)
  }
}

function late(timeoutMs: number): SluiceError {
  return new SluiceError('SLUICE_STORE_TIMEOUT', `Redis could not be reached within ${timeoutMs} ms`)
}

function checkClient(client: unknown): void {
  const { duplicate, callBuffer, status, isCluster } = (client ?? {}) as Partial<Redis>
  if (
    isCluster ||
    typeof duplicate !== 'function' ||
    typeof callBuffer !== 'function' ||
    typeof status !== 'string'
  ) {
    throw new SluiceError(
      'SLUICE_BAD_CLIENT',
      `The client of RedisStore is ${isCluster ? 'a Cluster' : show(client)}. Expected an ioredis client, \`new Redis(url)\``,
    )
  }
}
