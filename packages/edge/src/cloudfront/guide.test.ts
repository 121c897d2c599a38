import { Limiter, MemoryStore } from '@sluice/core'
import { snippetsOf } from '../../../testing/test/snippets.js'
import { secret } from '../../test/feed-world.js'
import { FeedPublisher, FeedSubscriber, readFeed } from '../feed/index.js'
import * as cloudfront from './index.js'

jest.spyOn(console, 'warn').mockImplementation(() => {})

/** Each with its first line, which names it. */
const snippets = snippetsOf('cloudfront.md').map((code) => [code.split('\n', 1)[0], code])

test.each(snippets)('the guide has a snippet that runs: %s', async (_, snippet) => {
  const written: unknown[] = []
  const scope = {
    ...cloudfront,
    Limiter,
    FeedSubscriber,
    readFeed,
    store: new MemoryStore(),
    publisher: new FeedPublisher({ key: { id: '2026-11', secret } }),
    feedSecret: secret,
    writeFileSync: (_file: string, content: string) => written.push(content),
    updateKeys: async (change: unknown) => written.push(change),
  }
  const made = 'return typeof handler === "undefined" ? undefined : handler'
  const body = `'use strict'; return (async () => { ${snippet}; ${made} })()`
  const handler = await new Function(...Object.keys(scope), body)(...Object.values(scope))
  expect(handler === undefined ? written : [typeof handler]).toHaveLength(1)
})
