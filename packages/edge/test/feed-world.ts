import { Limiter, MemoryStore, type Policy } from '@sluice/core'
import {
  FeedPublisher,
  type FeedPublisherOptions,
  FeedSubscriber,
  type FeedSubscriberOptions,
} from '../src/feed/index.js'

/** What signs the feeds of tests, under the id `one`. */
export const secret = 'a secret of thirty-two bytes or more'

const startMs = 1_800_000_000_000

/** An origin and an edge, each with a clock of its own. */
export class World {
  originMs = startMs
  edgeMs = startMs
  readonly warnings: string[] = []
  /** How often the edge has asked, and what it was told last. */
  readonly statuses: number[] = []
  readonly asked: Headers[] = []
  /** Stands between edge and origin. */
  between: (response: Response) => Response | Promise<Response> = (response) => response
  publisher: FeedPublisher
  readonly feed: FeedSubscriber
  readonly origin: Limiter

  constructor(
    policy: Partial<Policy> = {},
    publisher: Partial<FeedPublisherOptions> = {},
    feed: Partial<FeedSubscriberOptions> = {},
  ) {
    this.publisher = this.publish(publisher)
    this.feed = new FeedSubscriber({
      url: 'https://origin.example/block-feed',
      keys: { one: secret },
      jitter: 0,
      nowMs: () => this.edgeMs,
      logger: { warn: (line) => this.warnings.push(line) },
      fetch: async (url, init) => {
        const request = new Request(url as string, init)
        this.asked.push(request.headers)
        const response = await this.between(await this.publisher.fetch(request))
        this.statuses.push(response.status)
        return response
      },
      ...feed,
    })
    this.origin = new Limiter({
      algorithm: 'fixed-window',
      align: 'first-request',
      limit: 2,
      window: '1m',
      ...policy,
      store: new MemoryStore({ nowUs: () => this.originMs * 1000 }),
      blocks: true,
      onEvent: (event) => this.publisher.onEvent(event),
    })
  }

  publish(options: Partial<FeedPublisherOptions> = {}): FeedPublisher {
    this.publisher = new FeedPublisher({
      key: { id: 'one', secret },
      nowMs: () => this.originMs,
      ...options,
    })
    return this.publisher
  }

  pass(ms: number): void {
    this.originMs += ms
    this.edgeMs += ms
  }

  /** Exhausts a key at the origin. */
  async exhaust(...keys: string[]): Promise<void> {
    for (const key of keys) {
      for (let i = 0; i < 3; i++) await this.origin.consume({ key })
    }
  }

  /** Lets an interval pass, then asks for the feed. */
  async poll(): Promise<void> {
    this.pass(5000)
    await this.feed.poll()
  }

  waitOf(key: string): number | undefined {
    return this.feed.check(key)?.retryAfterMs
  }
}
