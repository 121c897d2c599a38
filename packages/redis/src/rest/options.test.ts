import { SluiceError } from '@sluice/core'
import { RedisRestStore, type RedisRestStoreOptions } from './index.js'

const good = { url: 'https://redis.example', token: 'secret-token' }
test.each<[string, unknown, RegExp]>([
  ['no options', undefined, /`url` is undefined/],
  ['no url', { token: 't' }, /`url` is undefined/],
  [
    'a url of Redis itself',
    { ...good, url: 'redis://redis.example:6379' },
    /`url` is "redis:\/\/redis.example:6379"/,
  ],
  [
    'credentials in the url',
    { ...good, url: 'https://me:secret@redis.example' },
    /`url` is "https:\/\/redis.example"/,
  ],
  [
    'a query in the url',
    { ...good, url: 'https://redis.example/?_token=secret' },
    /`url` is "https:\/\/redis.example"/,
  ],
  ['no token', { url: good.url }, /`token` is undefined/],
  ['an empty token', { ...good, token: '' }, /`token` is "text that no header can hold"/],
  ['a token with a line break', { ...good, token: 'secret\r\nx: y' }, /`token` is "text that no header/],
  ['a bad prefix', { ...good, prefix: '{a}' }, /`prefix` is "\{a\}"/],
  ['a fetch that is none', { ...good, fetch: 'fetch' }, /`fetch` is "fetch"/],
  ['an unknown option', { ...good, duplicate: false }, /Unknown option `duplicate`/],
])('a RedisRestStore is not made with %s, and the error shows no secret', (_, options, message) => {
  let error: Error | undefined
  try {
    new RedisRestStore(options as RedisRestStoreOptions)
  } catch (thrown) {
    error = thrown as Error
  }
  expect(error).toBeInstanceOf(SluiceError)
  expect(error?.message).toMatch(message)
  expect(error?.message).not.toContain('secret')
})
