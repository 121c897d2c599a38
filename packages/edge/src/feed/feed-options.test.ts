import { SluiceError } from '@sluice/core'
import { secret } from '../../test/feed-world.js'
import { FeedLimiter, FeedPublisher, FeedSubscriber } from './index.js'

describe('options that cannot be used are refused, and no error shows a secret', () => {
  const key = { id: 'one', secret }
  const subscriber = { url: 'https://origin.example', keys: { one: secret } }
  test.each<[string, () => unknown, RegExp]>([
    ['a publisher without options', () => new FeedPublisher(undefined as never), /`key` is undefined/],
    [
      'a short secret',
      () => new FeedPublisher({ key: { id: 'one', secret: 'short secret' } }),
      /`key` is "a secret of 12 bytes"/,
    ],
    [
      'a secret that is none',
      () => new FeedPublisher({ key: { id: 'one', secret: 7 as never } }),
      /`key` is "number"/,
    ],
    ['an id with a space', () => new FeedPublisher({ key: { id: 'o ne', secret } }), /`key` is "o ne"/],
    [
      'too many keys',
      () => new FeedPublisher({ key, maxKeys: 100_001 }),
      /`maxKeys` is 100001\. Expected a whole number from 1 to 100,000/,
    ],
    ['a wait below zero', () => new FeedPublisher({ key, minWaitMs: -1 }), /`minWaitMs`/],
    ['an age above a minute', () => new FeedPublisher({ key, maxAgeMs: 60_001 }), /`maxAgeMs`/],
    ['a misspelt option', () => new FeedPublisher({ key, maxKey: 1 } as never), /Unknown option `maxKey`/],
    ['a subscriber without options', () => new FeedSubscriber(undefined as never), /`url` is undefined/],
    [
      'a path for a url',
      () => new FeedSubscriber({ ...subscriber, url: '/block-feed' }),
      /`url` is "\/block-feed"/,
    ],
    ['no keys', () => new FeedSubscriber({ ...subscriber, keys: {} }), /`keys`/],
    [
      'a short secret of a subscriber',
      () => new FeedSubscriber({ ...subscriber, keys: { one: 'short secret' } }),
      /`keys` is "a secret of 12 bytes"/,
    ],
    [
      'an interval of a fraction',
      () => new FeedSubscriber({ ...subscriber, intervalMs: 100.5 }),
      /`intervalMs`/,
    ],
    ['a jitter above 1', () => new FeedSubscriber({ ...subscriber, jitter: 1.1 }), /`jitter`/],
    ['no time to answer', () => new FeedSubscriber({ ...subscriber, timeoutMs: 0 }), /`timeoutMs`/],
    [
      'a short time to be stale',
      () => new FeedSubscriber({ ...subscriber, maxStaleMs: 59_999 }),
      /`maxStaleMs`/,
    ],
    ['a small feed', () => new FeedSubscriber({ ...subscriber, maxBytes: 999 }), /`maxBytes`/],
    [
      'headers with a line break',
      () => new FeedSubscriber({ ...subscriber, headers: { a: 'secret\r\nb: c' } }),
      /`headers`/,
    ],
    ['a logger that is none', () => new FeedSubscriber({ ...subscriber, logger: {} as never }), /`logger`/],
    ['a fetch that is none', () => new FeedSubscriber({ ...subscriber, fetch: 'x' as never }), /`fetch`/],
    [
      'a limiter without a feed',
      () => new FeedLimiter({ limit: 1, window: '1m' } as never),
      /`feed` is undefined/,
    ],
  ])('%s', (_, make, message) => {
    let error: Error | undefined
    try {
      make()
    } catch (thrown) {
      error = thrown as Error
    }
    expect(error).toBeInstanceOf(SluiceError)
    expect(error?.message).toMatch(message)
    expect(error?.message).not.toMatch(/short secret|a secret of thirty|secret\\r/)
  })
})
