import { SluiceError } from '@sluice/core'
import type { Redis, RedisOptions } from 'ioredis'
import { script, scriptSha1 } from './script.generated.js'

/**
 * A connection of the store's own: it fails at once where a user's may wait, so that a decision keeps its budget, and
 * never sends a command twice, which would charge twice.
 */
export function duplicateFor(client: Redis): Redis {
  const options: RedisOptions = {
    enableOfflineQueue: false,
    enableAutoPipelining: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    retryStrategy: (attempt) => Math.min(50 * attempt, 500),
    lazyConnect: false,
    // The client holds a process open for this long after the end of a connection that was lost already.
    disconnectTimeout: 100,
  }
  return client.duplicate(options)
}

/** Runs the script on a connection and keeps track of the server's clock. */
export class Connection {
  readonly #client: Redis
  readonly #owned: boolean
  /** Fulfilled while the server can be asked and its clock is known; rejected while it is away. */
  #link: Promise<void>
  /** Ends the wait of calls made before the first attempt to connect ended. */
  #settleFirst: (link: Promise<void>) => void = ignore
  /** The server's TIME when last heard of, and the local monotonic time then. */
  #heard = { serverUs: 0, atMs: 0 }
  #lastError: Error | undefined
  #closed = false

  constructor(client: Redis, owned: boolean) {
    this.#client = client
    this.#owned = owned
    this.#link = new Promise((resolve) => {
      this.#settleFirst = resolve
    })
    this.#link.catch(ignore)
    if (client.status === 'ready') this.#onReady()
    client.on('ready', this.#onReady)
    client.on('close', this.#onClose)
    // A lost connection is an answer to those who wait for it, not an event that ends the process.
    if (owned) client.on('error', this.#onError)
    if (client.status === 'wait') client.connect().catch(ignore)
  }

  /**
   * Runs the script.
   * @param argument makes the script's argument once the server's clock is known
   * @throws SluiceError `SLUICE_STORE_FAILED` with the client's error as its cause
   */
  run(keys: readonly string[], argument: () => string): Promise<Buffer> {
    return this.#ask(async (client) => {
      const call = [keys.length, ...keys, argument()] as const
      const reply = await client.callBuffer('evalsha', [scriptSha1, ...call]).catch((error: Error) => {
        // A server that restarted or was failed over to has not seen the script.
        if (!error.message.startsWith('NOSCRIPT')) throw error
        return client.callBuffer('eval', [script, ...call])
      })
      return reply as Buffer
    })
  }

  /**
   * Deletes keys that share a slot.
   * @throws SluiceError `SLUICE_STORE_FAILED` with the client's error as its cause
   */
  async delete(keys: readonly string[]): Promise<void> {
    await this.#ask((client) => client.del(...keys))
  }

  async #ask<T>(ask: (client: Redis) => Promise<T>): Promise<T> {
    try {
      await this.#link
      return await ask(this.#client)
    } catch (error) {
      if (error instanceof SluiceError) throw error
      throw new SluiceError('SLUICE_STORE_FAILED', `Redis failed: ${(error as Error).message}`, {
        cause: error,
      })
    }
  }

  /** Remembers the server's clock as heard in a reply. */
  heard(serverUs: number): void {
    this.#heard = { serverUs, atMs: performance.now() }
  }

  /** The server's clock now, in microseconds, never ahead of it while it runs as fast as ours. */
  serverUs(): number {
    return Math.floor(this.#heard.serverUs + (performance.now() - this.#heard.atMs) * 1000)
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#client.off('ready', this.#onReady)
    this.#client.off('close', this.#onClose)
    if (this.#owned) this.#client.disconnect()
    this.#become(Promise.reject(new SluiceError('SLUICE_CLOSED', 'This RedisStore was closed')))
  }

  #become(link: Promise<void>): void {
    link.catch(ignore)
    this.#link = link
    this.#settleFirst(link)
  }

  async #synchronise(): Promise<void> {
    const [seconds, microseconds] = await this.#client.time()
    this.heard(Number(seconds) * 1_000_000 + Number(microseconds))
  }

  #away(): SluiceError {
    return new SluiceError('SLUICE_STORE_FAILED', 'Redis is not connected', { cause: this.#lastError })
  }

  readonly #onReady = (): void => this.#become(this.#synchronise())

  readonly #onClose = (): void => this.#become(Promise.reject(this.#away()))

  readonly #onError = (error: Error): void => {
    this.#lastError = error
  }
}

function ignore(): void {}
