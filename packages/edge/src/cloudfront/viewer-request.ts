import {
  badOption,
  checkWhole,
  type Decision,
  type Exchange,
  HttpLimiter,
  type HttpOptions,
  Limiter,
  type LimiterOptions,
  type MaybePromise,
  type Policy,
  pickOptions,
  type Refusal,
} from '@sluice/core'
import { FeedLimiter } from '../feed/feed-limiter.js'
import type { FeedSubscriber } from '../feed/feed-subscriber.js'
import type {
  CloudFrontHeaders,
  CloudFrontRequest,
  CloudFrontResponse,
  ViewerRequestEvent,
} from './events.js'
import { ShareStore } from './share-store.js'

/** Options of {@link viewerRequest}. Functions of the request get the request of the event. */
export type ViewerRequestOptions = Omit<
  HttpOptions<CloudFrontRequest, [request: CloudFrontRequest]>,
  'onLimited' | 'refundWhen'
> &
  Omit<LimiterOptions, 'store'> &
  Partial<Policy> & {
    /**
     * How many edge locations serve the site, 1 to 10,000: each serves this part of every limit, `burst` too, and at
     * least 1. Each container of a location counts by itself. Required, unless there is a `limiter`.
     */
    locations?: number
    /** Which keys the origin's limiter of the same name refuses. Default: no feed. */
    feed?: FeedSubscriber
    /**
     * Replies to a denied request in place of Sluice, which adds its headers. Undefined leaves the reply to Sluice. At
     * most 40 kB, and without headers that CloudFront does not allow.
     */
    onLimited?: (
      request: CloudFrontRequest,
      decision: Decision,
    ) => MaybePromise<CloudFrontResponse | undefined>
  }

/** A Lambda@Edge function for viewer requests. */
export type ViewerRequestHandler = ((
  event: ViewerRequestEvent,
) => Promise<CloudFrontRequest | CloudFrontResponse>) & {
  /** What it counts in. */
  readonly limiter: Limiter
}

const httpOptionNames = [
  'key',
  'cost',
  'plan',
  'defaultPlan',
  'onPlanError',
  'skip',
  'preflight',
  'headers',
  'legacyReset',
  'retryJitterMs',
  'message',
  'statusCode',
] as const

/** CloudFront takes 40 kB of a viewer request's response, of which the headers have the rest. */
const longestMessage = 32_768

/**
 * Makes a Lambda@Edge function for viewer requests: it refuses which keys the origin's feed lists, counts the others
 * against this location's share of the policies in the memory of its container, and passes on what is admitted. A client
 * is the address that CloudFront saw, `clientIp`.
 *
 * Responses to admitted requests carry no quota headers: a viewer request knows no response. Lambda@Edge has no
 * environment variables, so options stand in the code.
 * @throws SluiceError with the option, its value and what is expected
 * @example
 * export const handler = viewerRequest({ limit: 1000, window: '1m', locations: 10 })
 */
export function viewerRequest(options: ViewerRequestOptions): ViewerRequestHandler {
  const { onLimited } = options ?? {}
  const limiter = limiterFrom(options)
  const http = new HttpLimiter<CloudFrontRequest>({ limiter, ...pickOptions(options, httpOptionNames) })
  const handler = async (event: ViewerRequestEvent): Promise<CloudFrontRequest | CloudFrontResponse> => {
    const request = (event.Records[0] as ViewerRequestEvent['Records'][0]).cf.request
    const headers: CloudFrontHeaders = {}
    const { decision, refusal } = await http.handle(exchangeOf(request, headers))
    if (!refusal) return request
    const own = await onLimited?.(request, decision)
    if (own) return { ...own, headers: { ...headers, ...own.headers } }
    return replyOf(refusal, headers, request.method === 'HEAD')
  }
  return Object.assign(handler, { limiter })
}

function limiterFrom(options: ViewerRequestOptions): Limiter {
  const { limiter, locations, feed, onLimited, ...others } = options ?? {}
  if (onLimited !== undefined && typeof onLimited !== 'function') {
    throw badOption('onLimited', onLimited, 'a function')
  }
  checkLength(others.message)
  for (const name of httpOptionNames) delete others[name]
  if (limiter !== undefined) {
    const [beside] = Object.entries({ locations, feed, ...others }).filter(([, value]) => value !== undefined)
    if (beside) throw badOption(beside[0], beside[1], 'nothing beside `limiter`, which has its own')
    return checkWaits(limiter, false)
  }
  const { store } = others as LimiterOptions
  if (store !== undefined) {
    throw badOption('store', store, 'none: it counts in memory. Give a `limiter` to count elsewhere')
  }
  const limiterOptions = { ...others, store: new ShareStore(checkWhole('locations', locations, 1, 10_000)) }
  return checkWaits(feed ? new FeedLimiter({ ...limiterOptions, feed }) : new Limiter(limiterOptions), true)
}

/** Refuses the queue of a leaky bucket: a function that waits is paid for, and ended after 5 s. */
function checkWaits(limiter: Limiter, made: boolean): Limiter {
  if (!(limiter.longestDelayMs > 0)) return limiter
  if (made) void limiter.close()
  throw badOption('algorithm', 'leaky-bucket', 'one without a queue: Lambda@Edge is not to wait')
}

function checkLength(message: unknown): void {
  const text = typeof message === 'object' ? JSON.stringify(message) : message
  const { length } = new TextEncoder().encode(typeof text === 'string' ? text : '')
  if (length > longestMessage) {
    throw badOption('message', `${length} bytes`, `at most ${longestMessage} bytes, as CloudFront takes them`)
  }
}

function exchangeOf(request: CloudFrontRequest, headers: CloudFrontHeaders): Exchange<CloudFrontRequest> {
  return {
    request,
    response: undefined,
    identity: request,
    method: request.method,
    ip: request.clientIp,
    trustsEveryProxy: false,
    // Nobody but CloudFront is in front of it.
    trustsNoProxy: false,
    gone: false,
    headersSent: false,
    header: (name) => request.headers[name]?.map(({ value }) => value).join(', '),
    responseHeader: (name) => headers[name.toLowerCase()]?.[0]?.value,
    setResponseHeader(key, value) {
      headers[key.toLowerCase()] = [{ key, value }]
    },
    onEnd() {},
  }
}

const descriptions: Readonly<Record<number, string>> = {
  429: 'Too Many Requests',
  503: 'Service Unavailable',
}

/** Without `Content-Length`, which CloudFront sets itself and lets nobody else set. */
function replyOf(
  { status, contentType, body }: Refusal,
  headers: CloudFrontHeaders,
  head: boolean,
): CloudFrontResponse {
  const statusDescription = descriptions[status]
  return {
    status: String(status),
    ...(statusDescription !== undefined && { statusDescription }),
    headers: { ...headers, 'content-type': [{ key: 'Content-Type', value: contentType }] },
    ...(!head && { body, bodyEncoding: 'text' }),
  }
}
