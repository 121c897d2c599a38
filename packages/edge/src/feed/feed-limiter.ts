import {
  badOption,
  type Decision,
  Limiter,
  type LimiterOptions,
  type LimitRequest,
  type Policy,
} from '@sluice/core'
import type { FeedSubscriber } from './feed-subscriber.js'

/** Options of {@link FeedLimiter}: those of a limiter, and the feed. */
export type FeedLimiterOptions = LimiterOptions &
  Partial<Policy> & {
    /** Which keys the origin's limiter of the same name refuses. */
    feed: Pick<FeedSubscriber, 'check' | 'loaded' | 'poll'>
  }

/**
 * A limiter of an edge that refuses at the door which keys the origin's limiter of the same name refuses, and decides
 * the others by its own policies. It goes where any limiter goes, such as the option `limiter` of `withRateLimit` and
 * `viewerRequest`. What no limiter counts, such as a CORS preflight or a request that `skip` lets pass, is not refused.
 *
 * Requests make the feed be asked for when that is due, and do not wait for it, but for the first: as long as no feed was
 * taken, the request that asks waits up to the limiter's `timeoutMs`.
 */
export class FeedLimiter extends Limiter {
  readonly #feed: FeedLimiterOptions['feed']

  /** @throws SluiceError with the option, its value and what is expected */
  constructor(options: FeedLimiterOptions) {
    const { feed, ...limiterOptions } = options ?? {}
    if (typeof feed?.check !== 'function' || typeof feed.poll !== 'function') {
      throw badOption('feed', feed, 'a FeedSubscriber')
    }
    super(limiterOptions)
    this.#feed = feed
  }

  override async consume(request: LimitRequest): Promise<Decision> {
    const polling = this.#feed.poll()
    if (polling && !this.#feed.loaded) await atMost(this.timeoutMs, polling)
    const refusal = this.#refusalOf(request)
    return refusal ? this.report(refusal) : super.consume(request)
  }

  override async peek(request: LimitRequest): Promise<Decision> {
    const refusal = this.#refusalOf(request)
    return refusal ? this.report(refusal) : super.peek(request)
  }

  #refusalOf(request: LimitRequest): Decision | undefined {
    const refusal = this.#feed.check(request?.key, this.name)
    return refusal && request.plan !== undefined ? { ...refusal, plan: request.plan } : refusal
  }
}

/** Waits for a promise, but no longer than this. */
async function atMost(ms: number, promise: Promise<void>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([promise, over])
  clearTimeout(timer)
}
