import {
  badOption,
  checkLogger,
  checkWhole,
  type Decision,
  type ErrorCode,
  type Logger,
  refuseUnknownOptions,
  SluiceError,
} from '@sluice/core'
import { Listing } from './listing.js'
import { type FeedSecret, type SigningKey, verifyingKeys } from './signature.js'
import { readVerified } from './snapshot.js'

/** Options of {@link FeedSubscriber}. */
export interface FeedSubscriberOptions {
  /** Where the origin serves its feed. */
  url: string
  /**
   * Secrets by the id of their key. A feed that any of them has signed is taken: to change the key, add the new one here,
   * then let publishers sign with it, then take the old one away.
   */
  keys: Readonly<Record<string, FeedSecret>>
  /** Headers of the requests, such as one by which the origin knows its edges. Default: none. */
  headers?: Readonly<Record<string, string>>
  /** How often to ask for the feed, 100 to 3,600,000 ms. Default 5000. */
  intervalMs?: number
  /** The share of the interval by which it is made longer, at random each time: 0 to 1. Default 0.2. */
  jitter?: number
  /** How long to wait for the feed, 1 to 60,000 ms. Default 1000. */
  timeoutMs?: number
  /**
   * A feed that was issued longer ago than this, or this far in the future, by the clocks of origin and edge, is not
   * taken; and what was taken is forgotten when its publisher was not heard of for so long. 60,000 to 86,400,000 ms.
   * Default 600,000.
   */
  maxStaleMs?: number
  /** A longer feed is not read, 1,000 to 100,000,000 bytes. Default 4,000,000. */
  maxBytes?: number
  /** Where warnings are written, once until a feed is taken again. Default `console`. */
  logger?: Logger
  /** Makes the requests. Default: the runtime's own `fetch`. */
  fetch?: typeof globalThis.fetch
  /** The clock, in milliseconds since the epoch; for tests. Default: `Date.now`. */
  nowMs?: () => number
  /** What jitter draws from, from 0 up to 1; for tests. Default: `Math.random`. */
  random?: () => number
}

/**
 * Knows which keys the origin refuses. It asks for the feed when a request finds it due, or by a timer of its own after
 * {@link FeedSubscriber.start}, one question at a time. It never makes a request fail: whatever goes wrong with the feed,
 * keys that are not known to be refused go on to the limiter and the origin.
 * @example
 * const feed = new FeedSubscriber({ url: 'https://origin.example/block-feed', keys: { '2026-11': secret } })
 * const limiter = new FeedLimiter({ feed, name: 'api', limit: 100, window: '1m' })
 */
export class FeedSubscriber {
  readonly #url: string
  readonly #keys: ReadonlyMap<string, SigningKey>
  readonly #headers: Readonly<Record<string, string>>
  readonly #intervalMs: number
  readonly #jitter: number
  readonly #timeoutMs: number
  readonly #maxStaleMs: number
  readonly #maxBytes: number
  readonly #logger: Logger
  readonly #fetch: typeof globalThis.fetch
  readonly #nowMs: () => number
  readonly #random: () => number
  readonly #listing: Listing
  readonly #warned = new Set<string>()
  #etag: string | undefined
  #loaded = false
  #dueMs = Number.NEGATIVE_INFINITY
  #askedMs: number | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #closed = false

  /** @throws SluiceError with the option, its value (never a secret) and what is expected */
  constructor(options: FeedSubscriberOptions) {
    refuseUnknownOptions('FeedSubscriber', options ?? {}, knownOptions)
    const {
      url,
      keys,
      headers = {},
      intervalMs = 5000,
      jitter = 0.2,
      timeoutMs = 1000,
      maxStaleMs = 600_000,
      maxBytes = 4_000_000,
      logger = console,
      fetch = runtimeFetch,
      nowMs = Date.now,
      random = Math.random,
    } = options ?? {}
    if (typeof url !== 'string' || !/^https?:\/\//.test(url) || !URL.canParse(url)) {
      throw badOption('url', url, "the https: URL of the origin's feed")
    }
    if (!(jitter >= 0 && jitter <= 1)) throw badOption('jitter', jitter, 'a number from 0 to 1')
    checkLogger(logger)
    for (const [option, value] of Object.entries({ fetch, nowMs, random })) {
      if (typeof value !== 'function') throw badOption(option, value, 'a function')
    }
    this.#url = url
    this.#keys = verifyingKeys(keys)
    this.#headers = checkHeaders(headers)
    this.#intervalMs = checkWhole('intervalMs', intervalMs, 100, 3_600_000)
    this.#jitter = jitter
    this.#timeoutMs = checkWhole('timeoutMs', timeoutMs, 1, 60_000)
    this.#maxStaleMs = checkWhole('maxStaleMs', maxStaleMs, 60_000, 86_400_000)
    this.#maxBytes = checkWhole('maxBytes', maxBytes, 1000, 100_000_000)
    this.#logger = logger
    this.#fetch = fetch
    this.#nowMs = nowMs
    this.#random = random
    this.#listing = new Listing(this.#maxStaleMs)
  }

  /** Whether a feed was taken since the start: until then nothing is known to be refused. */
  get loaded(): boolean {
    return this.#loaded
  }

  /** How many keys are listed, some of which may be over. */
  get size(): number {
    return this.#listing.size
  }

  /**
   * The refusal of a key that is listed, as a decision with `source: 'deny-cache'`; undefined for any other, which is for
   * the limiter to decide.
   * @param limiter the name of the limiter at the origin. Default `'default'`
   */
  check(key: string, limiter = 'default'): Decision | undefined {
    return this.#listing.find(limiter, key, this.#nowMs())
  }

  /**
   * Asks for the feed if that is due and nobody does so already.
   * @returns a promise that never rejects, to be given to `waitUntil` where a runtime has it; undefined when not due
   */
  poll(): Promise<void> | undefined {
    const nowMs = this.#nowMs()
    // A question may never end: some runtimes drop it with the request that it was asked for, or freeze.
    const asking = this.#askedMs !== undefined && nowMs - this.#askedMs < 2 * this.#timeoutMs
    if (this.#closed || asking || nowMs < this.#dueMs) return undefined
    this.#dueMs = nowMs + this.#nextMs()
    this.#askedMs = nowMs
    return this.#ask(nowMs)
  }

  /** Asks for the feed now, then by a timer, which keeps no process alive; for servers. */
  start(): void {
    if (this.#closed || this.#timer !== undefined) return
    const again = (): void => {
      void this.poll()
      this.#timer = setTimeout(again, this.#nextMs())
      ;(this.#timer as { unref?(): void }).unref?.()
    }
    again()
  }

  /** Stops asking, and forgets all keys. Idempotent. */
  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#listing.clear()
  }

  #nextMs(): number {
    return Math.round(this.#intervalMs * (1 + this.#jitter * this.#random()))
  }

  async #ask(askedMs: number): Promise<void> {
    try {
      await this.#take(askedMs)
    } catch (error) {
      const coded = error instanceof SluiceError ? error : unreachable(error as Error)
      this.#warn(coded.code, coded.message)
    } finally {
      if (this.#askedMs === askedMs) this.#askedMs = undefined
    }
  }

  async #take(askedMs: number): Promise<void> {
    const { feed, etag, ageMs } = (await this.#download()) ?? {}
    if (feed === undefined || this.#closed) return
    const snapshot = await readVerified(feed, this.#keys)
    const staleMs = Math.abs(this.#nowMs() - snapshot.issuedAtMs)
    if (staleMs > this.#maxStaleMs) {
      throw ignored(
        `it was issued ${Math.round(staleMs / 1000)} s from now, by the clocks of origin and edge`,
      )
    }
    // What it waits for counts from when it was issued, at the latest when it was asked for: clocks may differ.
    const taken = this.#listing.take(snapshot, askedMs - (ageMs ?? 0))
    if (!taken) throw ignored('one of a higher sequence was taken before')
    this.#etag = etag
    this.#loaded = true
    this.#warned.clear()
  }

  /** Downloads the feed; undefined when it has not changed. */
  async #download(): Promise<{ feed: string; etag: string | undefined; ageMs: number } | undefined> {
    const abort = new AbortController()
    let timer = setTimeout(() => {
      // After a pause of the event loop timers run first, and an answer may be waiting in its socket.
      timer = setTimeout(() => abort.abort(new Error(`no answer within ${this.#timeoutMs} ms`)), 0)
    }, this.#timeoutMs)
    const fetch = this.#fetch
    try {
      const headers =
        this.#etag === undefined ? this.#headers : { ...this.#headers, 'if-none-match': this.#etag }
      // What leads elsewhere is not the origin, and is not to see the headers.
      const response = await fetch(this.#url, { headers, redirect: 'manual', signal: abort.signal })
      if (response.status === 304) return undefined
      if (response.status !== 200) {
        await response.body?.cancel()
        throw new Error(`HTTP ${response.status}`)
      }
      return {
        feed: await this.#read(response),
        etag: response.headers.get('etag') ?? undefined,
        ageMs: 1000 * (Number.parseInt(response.headers.get('age') ?? '', 10) || 0),
      }
    } finally {
      clearTimeout(timer)
    }
  }

  async #read(response: Response): Promise<string> {
    const reader = response.body?.getReader()
    const utf8 = new TextDecoder()
    let text = ''
    let bytes = 0
    for (;;) {
      const { done, value } = (await reader?.read()) ?? { done: true, value: undefined }
      if (done) return text + utf8.decode()
      bytes += value.byteLength
      if (bytes > this.#maxBytes) {
        await reader?.cancel()
        throw ignored(`it is longer than \`maxBytes\` (${this.#maxBytes})`)
      }
      text += utf8.decode(value, { stream: true })
    }
  }

  #warn(code: ErrorCode, message: string): void {
    if (this.#warned.has(code)) return
    this.#warned.add(code)
    // A logger that fails is no reason to fail a request.
    try {
      this.#logger.warn(`sluice: ${message}`)
    } catch {}
  }
}

/** Looked up for each request: programs may replace it. */
const runtimeFetch: typeof globalThis.fetch = (url, init) => globalThis.fetch(url, init)

const knownOptions = [
  'url',
  'keys',
  'headers',
  'intervalMs',
  'jitter',
  'timeoutMs',
  'maxStaleMs',
  'maxBytes',
  'logger',
  'fetch',
  'nowMs',
  'random',
]

function checkHeaders(headers: unknown): Readonly<Record<string, string>> {
  try {
    return Object.fromEntries(new Headers(headers as Record<string, string>))
  } catch {
    throw badOption('headers', typeof headers, 'an object of request headers')
  }
}

function ignored(why: string): SluiceError {
  return new SluiceError('SLUICE_FEED_IGNORED', `A block feed is ignored: ${why}`)
}

function unreachable(error: Error): SluiceError {
  const { message, code } = (error.cause ?? {}) as { message?: string; code?: string }
  const why = message || code || error.message
  return new SluiceError('SLUICE_FEED_UNREACHABLE', `The block feed cannot be had: ${why}`, { cause: error })
}
