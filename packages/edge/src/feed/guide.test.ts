import { byIp, httpReply, Limiter, MemoryStore } from '@sluice/core'
import { snippetsOf } from '../../../testing/test/snippets.js'
import { secret } from '../../test/feed-world.js'
import * as feed from './index.js'

test('the snippets of the guide run one after another: what the origin refuses is refused at the edge', async () => {
  const env = { FEED_SECRET: secret, EDGE_TOKEN: 'token' }
  const snippets = snippetsOf('block-feed.md')
  expect(snippets).toHaveLength(4)
  const [origin, edge, check, removal] = snippets
  const serve = `
    for (let i = 0; i < 101; i++) await limiter.consume({ key: 'ip:203.0.113.5' })
    answerWith(() => publisher.feed())`
  const exhausted = origin?.replace(
    "limit: 100, window: '1m'",
    "limit: 100, window: '400d', algorithm: 'fixed-window'",
  )
  // Each in the scope of those before it.
  const body = `return (async () => {
    ${exhausted}
    ${serve}
    ${edge?.replace('{\n  url', '{\n  fetch: fetchFeed,\n  url').replace("limit: 1000, window: '1m'", "limit: 1000, window: '1m', timeoutMs: 30_000")}
    const seen = [decision.source]
    {
      ${check?.replace('const { status', 'var { status')}
      seen.push(status)
    }
    ${removal}
    seen.push(publisher.size)
    return seen
  })()`
  let answer: () => Promise<string> = async () => ''
  const scope = {
    ...feed,
    Limiter,
    byIp,
    httpReply,
    env,
    store: new MemoryStore(),
    answerWith: (given: typeof answer) => {
      answer = given
    },
    fetchFeed: async () => new Response(await answer()),
  }
  expect(await new Function(...Object.keys(scope), body)(...Object.values(scope))).toEqual([
    'deny-cache',
    429,
    0,
  ])
})
