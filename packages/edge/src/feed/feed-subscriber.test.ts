import { type Decision, httpReply, Limiter, MemoryStore } from '@sluice/core'
import { World } from '../../test/feed-world.js'

describe('a key that the origin refuses', () => {
  test('is refused at the edge with the same reply, which counts its wait down', async () => {
    const world = new World()
    await world.exhaust('ip:203.0.113.5')
    const denial = await world.origin.consume({ key: 'ip:203.0.113.5' })
    await world.feed.poll()
    const refusal = world.feed.check('ip:203.0.113.5') as Decision
    expect(refusal).toMatchObject({ allowed: false, reason: 'quota', source: 'deny-cache', degraded: false })
    expect(httpReply(refusal)).toEqual(httpReply(denial))
    expect(httpReply(refusal, { headers: 'legacy' })).toEqual(httpReply(denial, { headers: 'legacy' }))
    world.pass(20_000)
    expect(world.waitOf('ip:203.0.113.5')).toBe(40_000)
    expect(world.feed.check('ip:203.0.113.6')).toBeUndefined()
  })

  test('is admitted again at the very millisecond at which the origin would', async () => {
    const world = new World()
    await world.exhaust('k')
    await world.feed.poll()
    world.pass(59_999)
    expect(world.waitOf('k')).toBe(1)
    world.pass(1)
    expect(world.waitOf('k')).toBeUndefined()
    expect(world.feed.size).toBe(0)
    expect(await world.origin.consume({ key: 'k' })).toMatchObject({ allowed: true })
  })

  test('is refused by the limiter of that name alone', async () => {
    const world = new World()
    await world.exhaust('k')
    await world.feed.poll()
    expect(world.feed.check('k', 'default')).toBeDefined()
    expect(world.feed.check('k', 'login')).toBeUndefined()
  })

  test('by a block is refused as blocked, until it ends', async () => {
    const world = new World()
    await world.origin.block('k', '1h')
    const denial = await world.origin.consume({ key: 'k' })
    await world.feed.poll()
    const refusal = world.feed.check('k') as Decision
    expect(refusal).toMatchObject({ reason: 'blocked', retryAfterMs: 3_600_000, policies: [] })
    expect(httpReply(refusal)).toMatchObject({ status: 429, body: httpReply(denial).body })
  })

  test('by several policies is refused until the last of them admits', async () => {
    const world = new World()
    const both = new Limiter({
      name: 'both',
      policies: [
        { name: 'a', algorithm: 'fixed-window', align: 'first-request', limit: 1, window: '1m' },
        { name: 'b', algorithm: 'fixed-window', align: 'first-request', limit: 1, window: '1h' },
        { name: 'c', limit: 100, window: '1h' },
      ],
      store: new MemoryStore({ nowUs: () => world.originMs * 1000 }),
      onEvent: (event) => world.publisher.onEvent(event),
    })
    for (let i = 0; i < 2; i++) await both.consume({ key: 'k' })
    await world.feed.poll()
    const refusal = world.feed.check('k', 'both') as Decision
    expect(refusal.retryAfterMs).toBe(3_600_000)
    expect(refusal.policies.map(({ name }) => name)).toEqual(['a', 'b'])
  })
})

describe('a subscriber', () => {
  test('asks when that is due, once at a time, and with the tag of what it has', async () => {
    const world = new World()
    const polling = world.feed.poll()
    expect(world.feed.poll()).toBeUndefined()
    expect(world.feed.loaded).toBe(false)
    await polling
    expect(world.feed.loaded).toBe(true)
    world.pass(4999)
    expect(world.feed.poll()).toBeUndefined()
    world.pass(1)
    await world.feed.poll()
    expect(world.statuses).toEqual([200, 304])
  })

  test('asks again though a question never ended, once its time is well over', async () => {
    const world = new World()
    world.between = () => new Promise<never>(() => {})
    void world.feed.poll()
    await world.exhaust('k')
    world.between = (response) => response
    world.pass(5000)
    await world.feed.poll()
    expect(world.feed.check('k')).toBeDefined()
    world.feed.close()
  })

  test('adds up to `jitter` of the interval at random', async () => {
    const world = new World({}, {}, { jitter: 0.5, random: () => 0.5 })
    await world.feed.poll()
    world.pass(6249)
    expect(world.feed.poll()).toBeUndefined()
    world.pass(1)
    expect(world.feed.poll()).toBeDefined()
  })

  test('sends the headers that it is given', async () => {
    const world = new World({}, {}, { headers: { Authorization: 'Bearer x' } })
    await world.feed.poll()
    expect(world.asked[0]?.get('authorization')).toBe('Bearer x')
  })

  test('asks by a timer of its own after start, until it is closed', async () => {
    const world = new World({}, {}, { intervalMs: 100, nowMs: Date.now, maxStaleMs: 86_400_000 })
    world.originMs = Date.now()
    world.feed.start()
    world.feed.start()
    while (world.statuses.length < 3) await new Promise((resolve) => setTimeout(resolve, 5))
    world.feed.close()
    expect(world.feed.poll()).toBeUndefined()
  })

  test('that is closed has forgotten all', async () => {
    const world = new World()
    await world.exhaust('k')
    await world.feed.poll()
    world.feed.close()
    expect(world.feed.check('k')).toBeUndefined()
  })
})

describe('whatever clocks tell', () => {
  test.each([-300_000, -1, 1, 300_000])('an edge that is %d ms off refuses for as long', async (offMs) => {
    const world = new World()
    world.edgeMs += offMs
    await world.exhaust('k')
    world.originMs += 1000
    await world.feed.poll()
    expect(world.waitOf('k')).toBe(59_000)
  })

  test('the time that a cache held the feed is not waited for again', async () => {
    const world = new World()
    await world.exhaust('k')
    world.between = (response) => {
      response.headers.set('age', '7')
      return response
    }
    await world.feed.poll()
    expect(world.waitOf('k')).toBe(53_000)
  })

  test.each([
    ['long ago', 600_001],
    ['in the future', -600_001],
  ])('a feed that was issued %s is ignored, so that requests go on to the origin', async (_, offMs) => {
    const world = new World()
    world.edgeMs += offMs
    await world.exhaust('k')
    await world.feed.poll()
    expect(world.feed.check('k')).toBeUndefined()
    expect(world.feed.loaded).toBe(false)
    expect(world.warnings).toEqual([
      'sluice: A block feed is ignored: it was issued 600 s from now, by the clocks of origin and edge (SLUICE_FEED_IGNORED)',
    ])
  })
})
