import { badOption, checkWhole, type Decision, refuseUnknownOptions, type SluiceEvent } from '@sluice/core'
import { type FeedSecret, SigningKey } from './signature.js'
import { encodeSnapshot, type FeedEntry } from './snapshot.js'

/** Options of {@link FeedPublisher}. */
export interface FeedPublisherOptions {
  /** What signs the feed. Its id, 1 to 32 of `A-Z a-z 0-9 _ . -`, tells subscribers which of their keys it is. */
  key: { id: string; secret: FeedSecret }
  /** The most keys to publish, 1 to 100,000; beyond it the one denied longest ago is left out. Default 10,000. */
  maxKeys?: number
  /**
   * Shorter waits are not published, being over before an edge has heard of them: 0 to 86,400,000 ms. Default 5000.
   */
  minWaitMs?: number
  /** How long one issue of the feed is served, at most, after it has become outdated: 0 to 60,000 ms. Default 1000. */
  maxAgeMs?: number
  /** The clock, in milliseconds since the epoch; for tests. Default: `Date.now`. */
  nowMs?: () => number
}

/** A request of Node.js, as much as is looked at. */
export interface FeedRequest {
  readonly method?: string | undefined
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
}

/** A response of Node.js, as much as is used. */
export interface FeedResponse {
  /** Sets status and headers. */
  writeHead(status: number, headers: Readonly<Record<string, string>>): unknown
  /** Sends the body, if there is one. */
  end(body?: string): unknown
}

/** What to answer a request for the feed. */
export interface FeedAnswer {
  readonly status: 200 | 304 | 405
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
}

interface Held {
  readonly limiter: string
  readonly key: string
  readonly untilMs: number
  readonly policies: FeedEntry['policies']
}

interface Issue {
  readonly sequence: number
  readonly atMs: number
  /** Of what was held when it was made. */
  readonly change: number
  readonly feed: Promise<string>
}

/** A feed is issued anew after this long though nothing has changed, so that subscribers know it to be alive. */
const reissueMs = 30_000

/** Longer keys are not published: clients may have written them. */
const longestKey = 256

/**
 * Publishes which keys limiters refuse and for how long, signed, so that edges refuse them at the door. Keys are listed
 * as the limiter counts them (`ip:203.0.113.5`, `key:` and a hash), so serve the feed to edges only.
 *
 * A key is listed when a request of any cost would be denied for at least `minWaitMs`: its quota is used up, or it is
 * blocked. What only this process denies, its store being away, is not listed, nor what could never pass. A request of
 * the key that is admitted takes it off the list.
 * @example
 * const publisher = new FeedPublisher({ key: { id: '2026-11', secret } })
 * app.use(rateLimit({ store, name: 'api', limit: 100, window: '1m', onEvent: publisher.onEvent }))
 * internal.get('/block-feed', publisher.handler)
 */
export class FeedPublisher {
  readonly #key: SigningKey
  readonly #maxKeys: number
  readonly #minWaitMs: number
  readonly #maxAgeMs: number
  readonly #nowMs: () => number
  readonly #source = crypto.randomUUID()
  /** By limiter and key, the one denied longest ago first. */
  readonly #held = new Map<string, Held>()
  #change = 0
  #issue: Issue | undefined

  /** @throws SluiceError with the option, its value (never the secret) and what is expected */
  constructor(options: FeedPublisherOptions) {
    const known = ['key', 'maxKeys', 'minWaitMs', 'maxAgeMs', 'nowMs']
    refuseUnknownOptions('FeedPublisher', options ?? {}, known)
    const { key, maxKeys = 10_000, minWaitMs = 5000, maxAgeMs = 1000, nowMs = Date.now } = options ?? {}
    this.#key = new SigningKey('key', key?.id, key?.secret)
    this.#maxKeys = checkWhole('maxKeys', maxKeys, 1, 100_000)
    this.#minWaitMs = checkWhole('minWaitMs', minWaitMs, 0, 86_400_000)
    this.#maxAgeMs = checkWhole('maxAgeMs', maxAgeMs, 0, 60_000)
    if (typeof nowMs !== 'function') throw badOption('nowMs', nowMs, 'a function that returns milliseconds')
    this.#nowMs = nowMs
  }

  /** How many keys are listed, some of which may be over. */
  get size(): number {
    return this.#held.size
  }

  /** Hears the events of limiters: give it as their option `onEvent`, or call it from yours. */
  readonly onEvent = (event: SluiceEvent): void => {
    if (event.type !== 'decision' || event.decision.degraded) return
    const { limiter, decision } = event
    const { key, allowed } = decision
    if (allowed) this.#remove(limiter, key)
    else this.#add(limiter, decision)
  }

  /**
   * Takes a key off the list; call it where you `reset` or `unblock` one.
   * @param limiter the name of the limiter. Default `'default'`
   */
  remove(key: string, limiter = 'default'): void {
    this.#remove(limiter, key)
  }

  /** The feed as it is served, for programs that carry it elsewhere. */
  async feed(): Promise<string> {
    return this.#current().feed
  }

  /** Serves the feed where handlers are functions from `Request` to `Response`. */
  readonly fetch = async (request: Request): Promise<Response> => {
    const { status, headers, body } = await this.answer(request.method, request.headers.get('if-none-match'))
    return new Response(body ?? null, { status, headers })
  }

  /** Serves the feed where handlers get a request and a response of Node.js, as in Express. */
  readonly handler = async (request: FeedRequest, response: FeedResponse): Promise<void> => {
    const { status, headers, body } = await this.answer(request.method, request.headers['if-none-match'])
    response.writeHead(status, headers)
    response.end(body)
  }

  /**
   * What to answer a request for the feed, for other frameworks.
   * @param etags the request's header `If-None-Match`
   */
  async answer(method = 'GET', etags?: string | readonly string[] | null): Promise<FeedAnswer> {
    if (method !== 'GET' && method !== 'HEAD')
      return { status: 405, headers: { Allow: 'GET, HEAD' }, body: undefined }
    const issue = this.#current()
    const etag = `"${this.#source}-${issue.sequence}"`
    // A cache asks each time whether its copy is the latest, so that it adds no age.
    const headers = { ETag: etag, 'Cache-Control': 'no-cache' }
    if (String(etags ?? '').includes(etag)) return { status: 304, headers, body: undefined }
    const feed = await issue.feed
    return {
      status: 200,
      headers: { ...headers, 'Content-Type': 'text/plain; charset=utf-8' },
      body: method === 'HEAD' ? undefined : feed,
    }
  }

  #add(limiter: string, decision: Decision): void {
    const { key } = decision
    const waitMs = waitOfAll(decision)
    if (waitMs === undefined || waitMs < this.#minWaitMs || key.length > longestKey) return
    this.#remove(limiter, key)
    if (this.#held.size >= this.#maxKeys) {
      const [first] = this.#held.keys()
      this.#held.delete(first as string)
    }
    const policies = decision.reason === 'blocked' ? [] : decision.policies.filter(isExhausted)
    const untilMs = this.#nowMs() + waitMs
    this.#held.set(nameOf(limiter, key), { limiter, key, untilMs, policies })
    this.#change += 1
  }

  #remove(limiter: string, key: string): void {
    if (this.#held.delete(nameOf(limiter, key))) this.#change += 1
  }

  /** The issue to serve now: signing each change at once would be work for those who cause it to choose. */
  #current(): Issue {
    const nowMs = this.#nowMs()
    const last = this.#issue
    if (last) {
      const ageMs = nowMs - last.atMs
      const longestMs = last.change === this.#change ? Math.max(reissueMs, this.#maxAgeMs) : this.#maxAgeMs
      // A clock that was set back makes a new one.
      if (ageMs >= 0 && ageMs < longestMs) return last
    }
    const entries: FeedEntry[] = []
    for (const [name, { limiter, key, untilMs, policies }] of this.#held) {
      if (untilMs > nowMs) entries.push({ limiter, key, waitMs: untilMs - nowMs, policies })
      else this.#held.delete(name)
    }
    const sequence = (last?.sequence ?? 0) + 1
    const snapshot = { source: this.#source, sequence, issuedAtMs: nowMs, entries }
    const issue = {
      sequence,
      atMs: nowMs,
      change: this.#change,
      feed: this.#key.sign(encodeSnapshot(snapshot)),
    }
    this.#issue = issue
    return issue
  }
}

/** How long no request of the key can pass, whatever it costs; undefined where one might, or where no wait helps. */
function waitOfAll(decision: Decision): number | undefined {
  if (decision.reason === 'blocked' && Number.isFinite(decision.retryAfterMs)) return decision.retryAfterMs
  if (decision.reason !== 'quota') return undefined
  const waits = decision.policies.filter(isExhausted).map(({ replenishAfterMs }) => replenishAfterMs)
  return waits.length > 0 ? Math.max(...waits) : undefined
}

function isExhausted({ allowed, shadow, remaining }: Decision['policies'][number]): boolean {
  return !allowed && !shadow && remaining === 0
}

/** Names of limiters hold no line break. */
function nameOf(limiter: string, key: string): string {
  return `${limiter}\n${key}`
}
