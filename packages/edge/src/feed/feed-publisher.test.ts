import type { SluiceEvent } from '@sluice/core'
import { secret, World } from '../../test/feed-world.js'
import { readFeed } from './index.js'

describe('a publisher', () => {
  test('lists no key whose wait is shorter than `minWaitMs`', async () => {
    const world = new World({ window: 4999 })
    await world.exhaust('k')
    expect(world.publisher.size).toBe(0)
    const longer = new World({ window: 5000 })
    await longer.exhaust('k')
    expect(longer.publisher.size).toBe(1)
  })

  test('lists no key of which a cheaper request would pass', async () => {
    const world = new World({ limit: 10 })
    await world.origin.consume({ key: 'k', cost: 6 })
    expect(await world.origin.consume({ key: 'k', cost: 5 })).toMatchObject({ allowed: false, remaining: 4 })
    expect(world.publisher.size).toBe(0)
  })

  test('lists a key until the cheapest request would pass, not until the denied one would', async () => {
    const world = new World({ algorithm: 'token-bucket', align: undefined, limit: 6, burst: 6 })
    await world.origin.consume({ key: 'k', cost: 6 })
    expect(await world.origin.consume({ key: 'k', cost: 3 })).toMatchObject({ retryAfterMs: 30_000 })
    await world.feed.poll()
    expect(world.waitOf('k')).toBe(10_000)
  })

  const decision = { key: 'k', allowed: false, reason: 'quota', degraded: false, retryAfterMs: 60_000 }
  const policy = {
    name: 'p',
    algorithm: 'fixed-window',
    limit: 1,
    windowMs: 60_000,
    burst: 1,
    allowed: false,
  }
  const exhausted = { ...policy, remaining: 0, replenishAfterMs: 60_000, shadow: false }
  test.each([
    ['denied for want of quota', {}, 1],
    ['denied by this process alone while the store is away', { degraded: true }, 0],
    ['denied since the store failed', { reason: 'store-error', policies: [] }, 0],
    ['denied for a cost that can never pass', { reason: 'cost', retryAfterMs: Number.POSITIVE_INFINITY }, 0],
    ['denied by a shadow', { policies: [{ ...exhausted, shadow: true }] }, 0],
    ['of 257 characters', { key: 'k'.repeat(257) }, 0],
  ])('of a key %s lists as many: %#', (_, changes, size) => {
    const { publisher } = new World()
    const event = {
      type: 'decision',
      limiter: 'l',
      decision: { ...decision, policies: [exhausted], ...changes },
    }
    publisher.onEvent(event as unknown as SluiceEvent)
    expect(publisher.size).toBe(size)
  })

  test('takes a key off the list once the origin admits it, whoever reset it', async () => {
    const world = new World()
    await world.exhaust('k')
    await world.origin.reset('k')
    await world.origin.consume({ key: 'k' })
    expect(world.publisher.size).toBe(0)
  })

  test('lists at most `maxKeys`, and leaves out the one denied longest ago', async () => {
    const world = new World({}, { maxKeys: 2 })
    await world.exhaust('a', 'b')
    await world.origin.consume({ key: 'a' })
    await world.exhaust('c')
    await world.feed.poll()
    expect(['a', 'b', 'c'].map((key) => world.feed.check(key) !== undefined)).toEqual([true, false, true])
  })

  test('issues the feed anew when it has changed and is older than `maxAgeMs`, or after half a minute', async () => {
    const world = new World({}, { maxAgeMs: 1000 })
    const issue = async (): Promise<number> =>
      (await readFeed(await world.publisher.feed(), { one: secret })).sequence
    expect(await issue()).toBe(1)
    await world.exhaust('k')
    world.pass(999)
    expect(await issue()).toBe(1)
    world.pass(1)
    expect(await issue()).toBe(2)
    world.pass(29_999)
    expect(await issue()).toBe(2)
    world.pass(1)
    expect(await issue()).toBe(3)
  })

  test('answers 304 to those who have the latest issue, and lets no cache serve another', async () => {
    const { publisher } = new World()
    const first = await publisher.answer()
    expect(first).toMatchObject({ status: 200, headers: { 'Cache-Control': 'no-cache' } })
    const etag = first.headers.ETag as string
    for (const known of [etag, `W/${etag}`, `"x", ${etag}`, ['"x"', etag]]) {
      expect(await publisher.answer('GET', known)).toEqual({
        status: 304,
        headers: { ETag: etag, 'Cache-Control': 'no-cache' },
        body: undefined,
      })
    }
    expect((await publisher.answer('GET', '"x"')).status).toBe(200)
  })

  test.each([
    ['HEAD', 200, undefined],
    ['POST', 405, 'GET, HEAD'],
  ])('answers %s without a body', async (method, status, allow) => {
    const answer = await new World().publisher.answer(method)
    expect(answer).toMatchObject({ status, body: undefined })
    expect(answer.headers.Allow).toBe(allow)
  })

  test('serves the same to a handler of Node.js', async () => {
    const { publisher } = new World()
    const expected = await publisher.answer()
    const seen: unknown[] = []
    await publisher.handler(
      { method: 'GET', headers: {} },
      { writeHead: (...head) => seen.push(...head), end: (body) => seen.push(body) },
    )
    expect(seen).toEqual([200, expected.headers, expected.body])
  })

  test('shows no secret in its feed', async () => {
    expect(await new World().publisher.feed()).not.toContain(secret)
  })
})

describe('removal', () => {
  test('reaches the edge within `maxAgeMs` and an interval', async () => {
    const world = new World()
    await world.exhaust('k')
    await world.feed.poll()
    await world.origin.reset('k')
    world.publisher.remove('k')
    expect(world.waitOf('k')).toBe(60_000)
    world.pass(1000)
    await world.poll()
    expect(world.feed.check('k')).toBeUndefined()
  })

  test('of what a publisher that is gone had listed comes once that was not heard of for `maxStaleMs`', async () => {
    const world = new World({}, {}, { maxStaleMs: 60_000 })
    await world.origin.block('k', 'forever')
    await world.origin.consume({ key: 'k' })
    await world.feed.poll()
    world.publish()
    await world.poll()
    world.pass(55_000)
    expect(world.feed.check('k')).toBeDefined()
    world.pass(1)
    expect(world.feed.check('k')).toBeUndefined()
  })

  test('of another process of the origin leaves what this one refuses', async () => {
    const world = new World()
    await world.exhaust('k')
    await world.feed.poll()
    const first = world.publisher
    world.publish()
    await world.exhaust('l')
    await world.poll()
    expect([world.waitOf('k'), world.waitOf('l')]).toEqual([55_000, 55_000])
    world.publisher = first
    first.remove('k')
    await world.poll()
    expect([world.waitOf('k'), world.waitOf('l')]).toEqual([undefined, 50_000])
  })
})
