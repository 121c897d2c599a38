import { SluiceError } from '@sluice/core'
import type { Redis } from 'ioredis'
import { type Client, duplicateOf, isCluster, isRefusal } from './client.js'
import { script, scriptSha1 } from './script.generated.js'
import { SilenceWatch } from './silence-watch.js'
import { clusterNodes, singleServer, type Topology } from './topology.js'
import type { Call } from './wire.js'

type ScriptArguments = readonly [keyCount: number, ...keysAndArgs: (string | Buffer)[]]

/** ioredis answers these too, though its types do not say so. */
interface ScriptCommands {
  evalshaBuffer(sha1: string, ...args: ScriptArguments): Promise<Buffer>
  evalBuffer(script: string, ...args: ScriptArguments): Promise<Buffer>
  del(...keys: string[]): Promise<number>
}

type ScriptClient = Client & ScriptCommands & NodeJS.EventEmitter

/** How long after its end a client of our own is connected again, in milliseconds. */
const reviveMs = 500

/** Runs the script through a client while its server, or Cluster, can be reached. */
export class Connection {
  readonly topology: Topology
  readonly #client: ScriptClient
  readonly #owned: boolean
  /** Fulfilled while the server can be asked and its clock is known; rejected while it is away. */
  #link: Promise<void>
  /** Whether it is fulfilled. */
  #isUp = false
  /** Calls on their way that bring the script. */
  #bringing = 0
  /** Ends the wait of calls made before the first attempt to connect ended. */
  #settleFirst: (link: Promise<void>) => void = ignore
  #lastError: Error | undefined
  #watch: SilenceWatch | undefined
  #reviving: NodeJS.Timeout | undefined
  #closed = false

  /** @param own whether to open a connection of its own, which is then closed too */
  constructor(given: Client, own: boolean) {
    const client = own
      ? duplicateOf(given, (error) => {
          this.#lastError = error
        })
      : given
    this.#client = client as ScriptClient
    this.#owned = own
    this.topology = isCluster(client) ? clusterNodes(client, own) : singleServer(client as Redis)
    this.#link = new Promise((resolve) => {
      this.#settleFirst = resolve
    })
    this.#link.catch(ignore)
    if (client.status === 'ready') this.#onReady()
    if (client.status === 'end' || client.status === 'close') this.#onClose()
    this.#client.on('ready', this.#onReady)
    this.#client.on('close', this.#onClose)
    this.#client.on('end', this.#onEnd)
    if (own) {
      // A lost connection is an answer to those who wait for it, not an event that ends the process.
      this.#client.on('error', this.#onError)
      this.#watch = new SilenceWatch(() => this.topology.connections())
    }
    if (client.status === 'wait') client.connect().catch(ignore)
  }

  /** Settles once calls can be made, or their failure is known; undefined if they can be made now. */
  linked(): Promise<void> | undefined {
    // What is asked of a Cluster while it is away would wait in its queue.
    return this.#isUp && this.#client.status === 'ready' ? undefined : this.#ask(async () => {})
  }

  /**
   * Runs the script, sending it now.
   * @throws SluiceError `SLUICE_STORE_FAILED` with the client's error as its cause
   */
  async run({ keys, argument }: Call): Promise<Uint8Array> {
    const { buffer, byteOffset, length } = argument
    const args = [keys.length, ...keys, Buffer.from(buffer, byteOffset, length)] as const
    try {
      return (await this.#evalsha(args)) ?? (await this.#eval(args))
    } catch (error) {
      throw this.#failed(error as Error)
    }
  }

  /** Sends what `send` asks for in one write to each server. */
  corked(send: () => void): void {
    const streams = this.topology.connections().map(({ stream }) => stream)
    for (const stream of streams) stream?.cork()
    try {
      send()
    } finally {
      for (const stream of streams) stream?.uncork()
    }
  }

  /**
   * Deletes keys: in a Cluster one by one, so that they may live anywhere.
   * @throws SluiceError `SLUICE_STORE_FAILED` with the client's error as its cause
   */
  async delete(keys: readonly string[]): Promise<void> {
    await this.#ask<unknown>((client) =>
      this.topology.sharded ? Promise.all(keys.map((key) => client.del(key))) : client.del(...keys),
    )
  }

  /**
   * Waits until the server can be asked.
   * @throws SluiceError `SLUICE_STORE_TIMEOUT` with the last error as its cause; a server's refusal of the first question
   */
  async connected(timeoutMs: number): Promise<void> {
    const deadlineMs = performance.now() + timeoutMs
    for (;;) {
      let cause: Error | undefined
      try {
        await this.#linked()
        if (this.#client.status === 'ready') return
      } catch (error) {
        if (this.#closed || isRefusal(error)) throw error
        cause = error as Error
      }
      const leftMs = deadlineMs - performance.now()
      if (leftMs <= 0) throw late(timeoutMs, this.#lastError ?? cause)
      await new Promise((resolve) => setTimeout(resolve, Math.min(leftMs, pollMs)))
    }
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    clearTimeout(this.#reviving)
    this.#watch?.stop()
    this.topology.close()
    this.#client.off('ready', this.#onReady)
    this.#client.off('close', this.#onClose)
    this.#client.off('end', this.#onEnd)
    if (this.#owned) this.#client.disconnect()
    this.#become(Promise.reject(new SluiceError('SLUICE_CLOSED', 'This RedisStore was closed')))
  }

  async #ask<T>(ask: (client: ScriptClient) => Promise<T>): Promise<T> {
    try {
      await this.#linked()
      // What is asked of a Cluster while it is away would wait in its queue.
      if (this.#client.status !== 'ready') throw this.#away()
      return await ask(this.#client)
    } catch (error) {
      throw error instanceof SluiceError ? error : this.#failed(error as Error)
    }
  }

  /** Runs the script if the server has it; else undefined. */
  async #evalsha(args: ScriptArguments): Promise<Buffer | undefined> {
    try {
      return await this.#client.evalshaBuffer(scriptSha1, ...args)
    } catch (error) {
      if (!(error as Error).message.startsWith('NOSCRIPT')) throw error
      return undefined
    }
  }

  /** Sends a server the script that has not seen it, since it restarted or was failed over to: once for many calls. */
  async #eval(args: ScriptArguments): Promise<Buffer> {
    // Sent behind a call that brings the script, this one finds it, unless it goes to another node.
    const reply = this.#bringing > 0 ? await this.#evalsha(args) : undefined
    if (reply) return reply
    this.#bringing += 1
    try {
      return await this.#client.evalBuffer(script, ...args)
    } finally {
      this.#bringing -= 1
    }
  }

  #failed(error: Error): SluiceError {
    this.topology.failed()
    const cause = this.#reasonOf(error)
    return new SluiceError('SLUICE_STORE_FAILED', `Redis failed: ${cause.message}`, { cause })
  }

  #become(link: Promise<void>): void {
    this.#isUp = false
    link.then(() => {
      this.#isUp = this.#link === link
    }, ignore)
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

  /** Why a call failed: that of one on a lost connection tells how often it was sent again, which is never. */
  #reasonOf(error: Error): Error {
    if (error.name !== 'MaxRetriesPerRequestError') return error
    return this.#lastError ?? new Error('The connection was closed', { cause: error })
  }

  #away(): SluiceError {
    const cause = this.#lastError
    return new SluiceError('SLUICE_STORE_FAILED', `Redis is not connected${because(cause)}`, { cause })
  }

  readonly #onReady = (): void => {
    this.#lastError = undefined
    this.#become(this.topology.greet())
  }

  readonly #onClose = (): void => this.#become(Promise.reject(this.#away()))

  readonly #onError = (error: Error): void => {
    this.#lastError = error
    // Sentinels that are down are asked again and again, without a connection that could be closed.
    if (this.#client.status !== 'ready' && !this.#closed) this.#onClose()
  }

  /**
   * A client that is ended while it connects says so by this event alone. Also one that never gives up can end: when a
   * failover is announced while it asks a Sentinel.
   */
  readonly #onEnd = (): void => {
    this.#onClose()
    if (this.#owned) this.#reviving = setTimeout(() => this.#client.connect().catch(ignore), reviveMs)
  }
}

/** How often a connection that is waited for is looked at, in milliseconds. */
const pollMs = 20

/** The error of a call that could not be made in time. */
export function late(timeoutMs: number, cause?: Error): SluiceError {
  const message = `Redis could not be reached within ${timeoutMs} ms${because(cause)}`
  return new SluiceError('SLUICE_STORE_TIMEOUT', message, cause && { cause })
}

/** The end of a sentence that tells the reason, as far as one is known. */
function because(cause: Error | undefined): string {
  const { message, code, lastNodeError } = (cause ?? {}) as Partial<
    NodeJS.ErrnoException & { lastNodeError: Error }
  >
  // What was tried at several addresses has its reasons within, and a Cluster that of the last node which was asked.
  const why = [message || code, lastNodeError?.message].filter(Boolean).join(' ')
  return why ? `: ${why}` : ''
}

function ignore(): void {}
