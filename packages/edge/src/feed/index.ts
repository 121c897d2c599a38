export { FeedLimiter, type FeedLimiterOptions } from './feed-limiter.js'
export {
  type FeedAnswer,
  FeedPublisher,
  type FeedPublisherOptions,
  type FeedRequest,
  type FeedResponse,
} from './feed-publisher.js'
export { FeedSubscriber, type FeedSubscriberOptions } from './feed-subscriber.js'
export type { FeedSecret } from './signature.js'
export { type FeedEntry, type FeedPolicy, type FeedSnapshot, readFeed } from './snapshot.js'
