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
import { checkPrefix } from '../prefix.js'
import { script, scriptSha1 } from '../script.generated.js'
import { ServerClock } from '../server-clock.js'
import { decodeReply, encodeCall, type Group } from '../wire.js'
import { type Command, type Fetch, RestClient } from './rest-client.js'

/** Options of {@link RedisRestStore}. */
export interface RedisRestStoreOptions {
  /** Where the service answers: an `https:` URL, or `http:` for one on your own network. */
  url: string
  /** What the service knows you by, sent as a bearer token. */
  token: string
  /** The beginning of every key: 1 to 64 of `A-Z a-z 0-9 _ . : -`. Default `'sluice'`. */
  prefix?: string
  /** Makes the requests. Default: the runtime's own `fetch`. */
  fetch?: typeof globalThis.fetch
}

/**
 * Counts in Redis behind an HTTP service that speaks the REST protocol of Upstash, for runtimes without TCP: the script,
 * the keys and the clock of `RedisStore`, so that both may share a Redis.
 *
 * A decision is one request, and those of one turn share one. The first decision of a store takes two, since the server's
 * clock is not known before.
 * @example
 * const store = new RedisRestStore({ url: env.UPSTASH_REDIS_REST_URL, token: env.UPSTASH_REDIS_REST_TOKEN })
 */
export class RedisRestStore implements Store {
  readonly shared = true
  readonly #prefix: string
  readonly #client: RestClient
  readonly #clock = new ServerClock()
  #closed = false

  /** @throws SluiceError with the option, its value (never the token) and what is expected */
  constructor(options: RedisRestStoreOptions) {
    refuseUnknownOptions('RedisRestStore', options ?? {}, ['url', 'token', 'prefix', 'fetch'])
    const {
      url,
      token,
      prefix,
      fetch = (...args: Parameters<Fetch>) => globalThis.fetch(...args),
    } = options ?? {}
    if (typeof fetch !== 'function') throw badOption('fetch', fetch, 'a function like `fetch`')
    this.#prefix = checkPrefix(prefix)
    this.#client = new RestClient(checkUrl(url), checkToken(token), fetch as Fetch)
  }

  /**
   * Charges all checks or none.
   * @throws SluiceError `SLUICE_STORE_FAILED` when the service or its Redis failed or cannot be reached,
   *   `SLUICE_STORE_TIMEOUT` when it did not answer within the budget
   */
  consume(checks: readonly Check[], options: ConsumeOptions): Promise<readonly Verdict[]> {
    return this.#run({ mode: 'charge', parts: checks }, options)
  }

  peek(checks: readonly Check[], options: ConsumeOptions): Promise<readonly Verdict[]> {
    return this.#run({ mode: 'peek', parts: checks }, options)
  }

  async refund(refunds: readonly Refund[], options: ConsumeOptions): Promise<void> {
    await this.#run({ mode: 'refund', parts: refunds }, options)
  }

  async reset(keys: readonly string[], { timeoutMs }: ConsumeOptions): Promise<void> {
    const deadlineMs = performance.now() + timeoutMs
    await this.#asked(timeoutMs, deadlineMs, (send) =>
      send(['DEL', ...keys.map((key) => this.#prefix + key)]),
    )
  }

  /** Refuses further calls; there is no connection to close. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true
  }

  /** Runs the script, again where the server's clock was not known or was set forward: the first reply tells it. */
  async #run(group: Group, { timeoutMs }: ConsumeOptions): Promise<readonly Verdict[]> {
    const deadlineMs = performance.now() + timeoutMs
    const keys = group.parts.map(({ key }) => this.#prefix + key)
    do {
      const {
        atUs,
        verdicts: [verdicts],
      } = await this.#asked(timeoutMs, deadlineMs, async (send) => {
        const leftUs = Math.floor((deadlineMs - performance.now()) * 1000)
        const sent = encodeCall([{ group, keys, notAfterUs: this.#clock.nowUs() + leftUs }])
        // JSON cannot hold the bytes of the argument.
        const call = [sent.keys.length, ...sent.keys, hexOf(sent.argument), 'hex']
        const reply = await send(['EVALSHA', scriptSha1, ...call]).catch((error: Error) => {
          // The server restarted, was failed over to, or has forgotten its scripts.
          if (!error.message.startsWith('NOSCRIPT')) throw error
          return send(['EVAL', script, ...call])
        })
        return decodeReply(bytesOf(reply), [{ group }])
      })
      this.#clock.heard(atUs)
      if (verdicts) return verdicts
    } while (performance.now() < deadlineMs)
    throw late(timeoutMs)
  }

  async #asked<T>(
    timeoutMs: number,
    deadlineMs: number,
    ask: (send: (command: Command) => Promise<unknown>) => Promise<T>,
  ): Promise<T> {
    if (this.#closed) throw new SluiceError('SLUICE_CLOSED', 'This RedisRestStore was closed')
    try {
      return await ask((command) => {
        const budget = { timeoutMs: deadlineMs - performance.now(), late: () => late(timeoutMs) }
        return this.#client.send(command, budget)
      })
    } catch (error) {
      if (error instanceof SluiceError) throw error
      const { message } = error as Error
      throw new SluiceError('SLUICE_STORE_FAILED', `Redis over HTTP failed: ${message}`, { cause: error })
    }
  }
}

function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** The bytes of a reply of the script. */
function bytesOf(reply: unknown): Uint8Array {
  if (typeof reply !== 'string') throw new Error(`the script's reply is ${show(reply)}, not base64`)
  return Uint8Array.from(atob(reply), (character) => character.charCodeAt(0))
}

function late(timeoutMs: number): SluiceError {
  return new SluiceError('SLUICE_STORE_TIMEOUT', `Redis over HTTP did not answer within ${timeoutMs} ms`)
}

/** @returns the URL without slashes at its end */
function checkUrl(url: unknown): string {
  const parsed = typeof url === 'string' && URL.canParse(url) ? new URL(url) : undefined
  const { protocol, host, username, password, search, hash } = parsed ?? ({} as Partial<URL>)
  if (!parsed || !/^https?:$/.test(parsed.protocol) || username || password || search || hash) {
    // A password in it is not to be shown.
    const shown = parsed ? `${protocol}//${host}` : url
    throw badOption('url', shown, 'the https: URL of a REST service for Redis, without credentials or query')
  }
  return parsed.href.replace(/\/+$/, '')
}

function checkToken(token: unknown): string {
  if (typeof token === 'string' && /^[\x21-\x7e]+$/.test(token)) return token
  const shown = typeof token === 'string' ? 'text that no header can hold' : token
  throw badOption('token', shown, 'the token of the REST service, which is printable ASCII without spaces')
}
