import type { Redis } from 'ioredis'

/** How often connections are looked at, in milliseconds. */
const everyMs = 250

/** After how many looks without a byte a connection is given up that owes replies. */
const patience = 3

/**
 * Ends connections that owe replies, those of their handshake included, and on which nothing has come back for about a
 * second: they may lead nowhere, and new ones may not. Counts looks, not time, since after a pause of the event loop
 * timers run before what has arrived is read.
 */
export class SilenceWatch {
  readonly #timer: NodeJS.Timeout
  /** What was read from each socket, and how many looks ago that changed. */
  readonly #seen = new WeakMap<NodeJS.EventEmitter, { bytesRead: number; looks: number }>()

  constructor(connections: () => readonly Redis[]) {
    this.#timer = setInterval(() => {
      for (const connection of connections()) this.#look(connection)
    }, everyMs)
    this.#timer.unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #look({ stream, commandQueue }: Redis): void {
    if (!stream || stream.destroyed) return
    const { bytesRead } = stream
    const seen = this.#seen.get(stream)
    if (!seen || seen.bytesRead !== bytesRead || commandQueue.length === 0) {
      this.#seen.set(stream, { bytesRead, looks: 0 })
    } else if (++seen.looks === patience) {
      stream.destroy(new Error(`Nothing has come back for ${patience * everyMs} ms`))
    }
  }
}
