import type { SluiceEvent } from '@sluice/core'
import { World } from '../../test/feed-world.js'
import { withRateLimit } from '../index.js'
import { FeedLimiter } from './index.js'

describe('a FeedLimiter', () => {
  function edge(world: World, options: object = {}): FeedLimiter {
    return new FeedLimiter({ feed: world.feed, limit: 2, window: '1m', timeoutMs: 30_000, ...options })
  }

  test('refuses what is listed and charges nothing for it, and decides the rest by its own policies', async () => {
    const world = new World()
    await world.exhaust('k')
    const limiter = edge(world)
    for (let i = 0; i < 5; i++) {
      expect(await limiter.consume({ key: 'k' })).toMatchObject({ allowed: false, source: 'deny-cache' })
    }
    expect(await limiter.peek({ key: 'k' })).toMatchObject({ allowed: false, source: 'deny-cache' })
    expect(await limiter.consume({ key: 'l' })).toMatchObject({
      allowed: true,
      source: 'store',
      remaining: 1,
    })
    world.pass(60_000)
    expect(await limiter.consume({ key: 'k' })).toMatchObject({ allowed: true, remaining: 1 })
  })

  test('tells its listener of a refusal as of any decision', async () => {
    const world = new World()
    await world.exhaust('k')
    const events: SluiceEvent[] = []
    const limiter = edge(world, { onEvent: (event: SluiceEvent) => events.push(event) })
    const decision = await limiter.consume({ key: 'k' })
    expect(events).toEqual([{ type: 'decision', limiter: 'default', decision }])
  })

  test('keeps the plan of a request on its refusal', async () => {
    const world = new World()
    await world.exhaust('k')
    const limiter = new FeedLimiter({
      feed: world.feed,
      plans: { pro: { limit: 5, window: '1m' } },
      timeoutMs: 30_000,
    })
    expect(await limiter.consume({ key: 'k', plan: 'pro' })).toMatchObject({ allowed: false, plan: 'pro' })
  })

  test('waits for its first feed up to `timeoutMs`, and for no other', async () => {
    const world = new World()
    let answer: ((response: Response) => void) | undefined
    world.between = () =>
      new Promise((resolve) => {
        answer = resolve
      })
    const limiter = edge(world, { timeoutMs: 20 })
    await world.exhaust('k')
    expect(await limiter.consume({ key: 'k' })).toMatchObject({ allowed: true })
    answer?.(new Response(await world.publisher.feed()))
    while (!world.feed.loaded) await new Promise((resolve) => setImmediate(resolve))
    expect(await limiter.consume({ key: 'k' })).toMatchObject({ allowed: false })
  })

  test('refuses at the door of withRateLimit, whose handler is not called', async () => {
    const world = new World()
    await world.exhaust('ip:203.0.113.5')
    const handler = jest.fn(() => new Response('ok'))
    const address = (): string => '203.0.113.5'
    const response = await withRateLimit(handler, { limiter: edge(world), address })(
      new Request('http://edge'),
    )
    expect([response.status, response.headers.get('retry-after')]).toEqual([429, '60'])
    expect(handler).not.toHaveBeenCalled()
  })

  test('goes on without its feed when the origin is dead', async () => {
    const world = new World()
    world.between = () => Promise.reject(new Error('dead'))
    const limiter = edge(world)
    expect(await limiter.consume({ key: 'k' })).toMatchObject({ allowed: true, degraded: false })
  })

  test('refuses a key that is no text as any limiter does', async () => {
    await expect(edge(new World()).consume(undefined as never)).rejects.toMatchObject({
      code: 'SLUICE_BAD_KEY',
    })
  })
})
