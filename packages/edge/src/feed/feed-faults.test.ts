import { secret, World } from '../../test/feed-world.js'
import { FeedSubscriber, readFeed } from './index.js'
import { SigningKey } from './signature.js'

const other = 'another secret of thirty-two bytes..'

describe('a feed that goes wrong', () => {
  const text =
    (body: string, status = 200): (() => Response) =>
    () =>
      new Response(body, { status })
  const edit = (change: (feed: string) => string): World['between'] => {
    return async (response) => new Response(change(await response.text()))
  }
  const signed = 'SLUICE_FEED_SIGNATURE'
  const ignored = 'SLUICE_FEED_IGNORED'
  const unreachable = 'SLUICE_FEED_UNREACHABLE'

  test.each<[string, World['between'], string]>([
    ['changed on its way', edit((feed) => feed.replace('"k"', '"x"')), signed],
    ['with the id of another key', edit((feed) => feed.replace(' one ', ' two ')), signed],
    [
      'with a signature that is none',
      edit((feed) => feed.replace(/ [\w-]{43}\n/, ` ${'A'.repeat(43)}\n`)),
      signed,
    ],
    ['cut short', edit((feed) => feed.slice(0, -1)), signed],
    ['without a signature', text('{"entries":{}}'), signed],
    ['of HTML', text('<html>'), signed],
    ['of nothing', text(''), signed],
    ['longer than `maxBytes`', edit((feed) => feed + ' '.repeat(4_000_000)), ignored],
    ['with a status of failure', text('down', 503), unreachable],
    [
      'that leads elsewhere',
      () => new Response(null, { status: 302, headers: { location: '/' } }),
      unreachable,
    ],
    [
      'that does not come',
      () => Promise.reject(new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') })),
      unreachable,
    ],
  ])(
    '%s is ignored: the last good one is kept until its entries are over, with one warning',
    async (_, fault, code) => {
      const world = new World()
      await world.exhaust('k')
      await world.feed.poll()
      const sound = world.between
      world.between = fault
      // What the publisher has meanwhile would be taken, were it sound.
      await world.exhaust('k', 'l')
      for (let i = 0; i < 3; i++) await world.poll()
      expect([world.waitOf('k'), world.waitOf('l')]).toEqual([45_000, undefined])
      expect(world.warnings).toHaveLength(1)
      expect(world.warnings[0]).toContain(`(${code})`)
      world.pass(45_000)
      expect(world.feed.check('k')).toBeUndefined()

      world.between = sound
      await world.exhaust('k')
      await world.poll()
      expect(world.feed.check('k')).toBeDefined()
      world.between = fault
      await world.exhaust('k')
      await world.poll()
      expect(world.warnings).toHaveLength(2)
    },
  )

  test.each([
    ['an older one of the same publisher', 0],
    ['the oldest', 1],
  ])('in that it is %s is ignored', async (_, which) => {
    const world = new World()
    const copies: string[] = []
    world.between = async (response) => {
      const copy = response.clone()
      if (copy.status === 200) copies.push(await copy.text())
      return response
    }
    for (const key of ['a', 'b', 'c']) {
      await world.exhaust(key)
      await world.poll()
    }
    expect(copies).toHaveLength(3)
    world.between = () => new Response(copies[1 - which] as string)
    await world.exhaust('d')
    await world.poll()
    expect(['a', 'b', 'c'].map((key) => world.feed.check(key) !== undefined)).toEqual([true, true, true])
    expect(world.warnings).toEqual([expect.stringContaining('higher sequence')])
  })

  test('in that it is the same again is no mistake', async () => {
    const world = new World()
    let copy = ''
    world.between = async (response) => {
      copy ||= await response.clone().text()
      return new Response(copy)
    }
    await world.exhaust('k')
    for (let i = 0; i < 2; i++) await world.poll()
    expect(world.waitOf('k')).toBe(55_000)
    expect(world.warnings).toEqual([])
  })

  test('in that it does not end is given up after `timeoutMs`', async () => {
    const world = new World({}, {}, { timeoutMs: 20 })
    world.feed.close()
    const never: typeof fetch = (_url, init) =>
      new Promise((_resolve, reject) => {
        init?.signal?.addEventListener('abort', () => reject(init.signal?.reason))
      })
    const warnings: string[] = []
    const feed = new FeedSubscriber({
      url: 'https://origin.example',
      keys: { one: secret },
      timeoutMs: 20,
      fetch: never,
      logger: { warn: (line) => warnings.push(line) },
    })
    await feed.poll()
    expect(warnings).toEqual([
      'sluice: The block feed cannot be had: no answer within 20 ms (SLUICE_FEED_UNREACHABLE)',
    ])
  })

  test('and a logger that throws fail no request', async () => {
    const logger = {
      warn() {
        throw new Error('disk full')
      },
    }
    const world = new World({}, {}, { logger })
    world.between = text('<html>')
    await expect(world.feed.poll()).resolves.toBeUndefined()
  })
})

describe('keys', () => {
  test('are changed without a gap: subscribers learn the new one first', async () => {
    const world = new World({}, {}, { keys: { one: secret, two: other } })
    await world.exhaust('k')
    await world.poll()
    world.publish({ key: { id: 'two', secret: other } })
    await world.exhaust('l')
    await world.poll()
    expect([world.waitOf('k'), world.waitOf('l')]).toEqual([50_000, 55_000])
    expect(world.warnings).toEqual([])
  })

  test('may be bytes', async () => {
    const world = new World({}, {}, { keys: { one: new TextEncoder().encode(secret) } })
    await world.feed.poll()
    expect(world.feed.loaded).toBe(true)
  })

  test.each([
    ['another secret under the same id', { one: other }],
    ['the secret under another id', { two: secret }],
  ])('that are %s are refused by readFeed', async (_, keys) => {
    const feed = await new World().publisher.feed()
    await expect(readFeed(feed, keys)).rejects.toMatchObject({ code: 'SLUICE_FEED_SIGNATURE' })
  })
})

describe('a feed that was signed by mistake', () => {
  const good = {
    source: 's',
    sequence: 1,
    issuedAtMs: 1,
    policies: [['p', 'gcra', 1, 1, 1]],
    entries: { l: [['k', 1, 0]] },
  }

  async function read(body: unknown): Promise<unknown> {
    return readFeed(await new SigningKey('key', 'one', secret).sign(JSON.stringify(body)), { one: secret })
  }

  test('reads as it should where it is sound', async () => {
    const policies = [{ name: 'p', algorithm: 'gcra', limit: 1, windowMs: 1, burst: 1 }]
    const entries = [{ limiter: 'l', key: 'k', waitMs: 1, policies }]
    expect(await read(good)).toEqual({ source: 's', sequence: 1, issuedAtMs: 1, entries })
  })

  test.each([
    ['null', null],
    ['an array', []],
    ['no source', { ...good, source: 1 }],
    ['a fraction for a sequence', { ...good, sequence: 1.5 }],
    ['no time', { ...good, issuedAtMs: null }],
    ['a wait below zero', { ...good, entries: { l: [['k', -1, 0]] } }],
    ['a key that is no text', { ...good, entries: { l: [[7, 1, 0]] } }],
    ['a policy that is not there', { ...good, entries: { l: [['k', 1, 1]] } }],
    ['an unknown algorithm', { ...good, policies: [['p', 'x', 1, 1, 1]] }],
    ['entries that are no list', { ...good, entries: { l: 'k' } }],
  ])('is refused with %s', async (_, body) => {
    await expect(read(body)).rejects.toMatchObject({ code: 'SLUICE_FEED_IGNORED' })
  })
})
