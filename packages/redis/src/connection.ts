import { SluiceError } from '@sluice/core'
import type { RedisOptions, Redis as RedisType } from 'ioredis'
import { script, scriptSha1 } from './script.generated.js'

/** ioredis answers these too, though its types do not say so. */
interface ScriptCommands {
  evalshaBuffer(sha1: string, keyCount: number, ...keysAndArgs: string[]): Promise<Buffer>
  evalBuffer(script: string, keyCount: number, ...keysAndArgs: string[]): Promise<Buffer>
}

type Redis = RedisType & ScriptCommands

/**
 * A connection of the store's own: it fails at once where a user's may wait, so that a decision keeps its budget, and
 * never sends a command twice, which would charge twice.
 */
export function duplicateFor(client: RedisType): RedisType {
  const options: RedisOptions = {
    enableOfflineQueue: false,
    enableAutoPipelining: false,
    maxRetriesPerRequest: 0,
    // The budget of a decision is the limiter's; a timeout of the client's own would also end the first question.
    commandTimeout: undefined,
    // A master that became a replica keeps its connections: the address may lead to the new master by now.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
    autoResendUnfulfilledCommands: false,
    retryStrategy: (attempt) => Math.min(50 * attempt, 500),
    lazyConnect: false,
    // The client holds a process open for this long after the end of a connection that was lost already.
    disconnectTimeout: 100,
  }
  return client.duplicate(options)
}

/** How long the clocks of two machines can be taken to run alike. */
const longestTrustMs = 10_000

/** No reply is read as late as this, in microseconds. */
const longestDelayUs = 5_000_000

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

  constructor(client: RedisType, owned: boolean) {
    this.#client = client as Redis
    this.#owned = owned
    this.#link = new Promise((resolve) => {
      this.#settleFirst = resolve
    })
    this.#link.catch(ignore)
    if (client.status === 'ready') this.#onReady()
    if (client.status === 'end' || client.status === 'close') this.#onClose()
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
      const reply = await client.evalshaBuffer(scriptSha1, ...call).catch((error: Error) => {
        // A server that restarted or was failed over to has not seen the script.
        if (!error.message.startsWith('NOSCRIPT')) throw error
        return client.evalBuffer(script, ...call)
      })
      return reply
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
      await this.#linked()
      return await ask(this.#client)
    } catch (error) {
      if (error instanceof SluiceError) throw error
      throw new SluiceError('SLUICE_STORE_FAILED', `Redis failed: ${(error as Error).message}`, {
        cause: error,
      })
    }
  }

  /**
   * Remembers the server's clock as heard in a reply. A reply that was read late tells less than an earlier one did,
   * unless that is so old that the clocks may have drifted; one that is behind by more than any delay was set back.
   */
  heard(serverUs: number): void {
    const atMs = performance.now()
    const behindUs = this.serverUs() - serverUs
    if (behindUs < 0 || behindUs > longestDelayUs || atMs - this.#heard.atMs > longestTrustMs) {
      this.#heard = { serverUs, atMs }
    }
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

  /** Settles as the link does; a question that failed on a connection that stands is asked again. */
  async #linked(): Promise<void> {
    const link = this.#link
    try {
      await link
    } catch (error) {
      if (this.#closed || this.#client.status !== 'ready') throw error
      // The first of those that waited asks, for all of them.
      if (this.#link === link) this.#onReady()
      await this.#link
    }
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
