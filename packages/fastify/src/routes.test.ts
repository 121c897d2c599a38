import { remaining, serve, statuses } from '../test/serve.js'
import { app, get, limit, newApp, plugin, store } from '../test/site.js'
import {
  byHeader,
  type Decision,
  Limiter,
  type RateLimitPluginOptions,
  type RouteRateLimit,
  rateLimitPlugin,
} from './index.js'

describe("a route's limits", () => {
  test('add to the global ones B37', async () => {
    await plugin(limit(5))
    get('/', { ...limit(2) })
    get('/other', { ...limit(3) })
    const send = await serve(app)
    const first = await send('/')
    expect(first.body).toBe('["5-per-1m","GET /"]')
    expect(first.headers).toMatchObject({
      'ratelimit-policy': '"5-per-1m";q=5;w=60, "GET /";q=2;w=60',
      ratelimit: '"5-per-1m";r=4;t=60, "GET /";r=1;t=60',
    })
    expect(await statuses(send, '/', '/', '/other', '/other', '/other')).toEqual([200, 429, 200, 200, 429])
  })

  test('take their place with replace: true', async () => {
    await plugin(limit(1))
    get('/', { ...limit(3), replace: true })
    expect(await remaining(await serve(app), '/', '/', '/')).toEqual(['2', '1', '0'])
  })

  test('false takes the route out of all global ones, also of an outer plugin', async () => {
    await plugin(limit(1))
    await app.register(async (inner) => {
      await inner.register(rateLimitPlugin, limit(1))
      get('/inner', false, inner)
    })
    get('/health', false)
    get('/limited', { ...limit(9) })
    const send = await serve(app)
    expect(await statuses(send, '/health', '/health', '/inner', '/inner')).toEqual([200, 200, 200, 200])
    expect(await statuses(send, '/limited', '/limited')).toEqual([200, 429])
  })

  test('are each their own, also where routes are given the same options', async () => {
    await plugin()
    const shared = limit(1)
    for (const url of ['/a', '/b', '/items/:id']) get(url, shared)
    app.post('/a', { config: { rateLimit: shared } }, async () => 'ok')
    const send = await serve(app)
    expect(await statuses(send, '/a', '/b', '/items/1', 'POST /a')).toEqual([200, 200, 200, 200])
    expect(await statuses(send, '/a', '/b', '/items/2', 'POST /a')).toEqual([429, 429, 429, 429])
  })

  test('are counted under the name of method and pattern, so that they survive a restart', async () => {
    await plugin()
    get('/items/:id', limit(2))
    await statuses(await serve(app), '/items/1')
    await app.close()
    newApp()
    await plugin()
    get('/other', limit(2))
    get('/items/:id', limit(2))
    expect(await statuses(await serve(app), '/items/2', '/items/3')).toEqual([200, 429])
    await app.close()
    const limiter = new Limiter({ store, name: 'GET /items/:id', ...limit(2) })
    expect(await limiter.peek({ key: 'ip:127.0.0.1' })).toMatchObject({ remaining: 0 })
  })

  test('of patterns that fit no name are told apart all the same', async () => {
    await plugin()
    const long = `/${'x'.repeat(80)}`
    for (const url of [`${long}/a`, `${long}/b`, '/é', '/è']) get(url, limit(1))
    const send = await serve(app)
    const urls = [`${long}/a`, `${long}/b`, '/%C3%A9', '/%C3%A8']
    expect(await statuses(send, ...urls)).toEqual([200, 200, 200, 200])
    expect(await statuses(send, ...urls)).toEqual([429, 429, 429, 429])
    expect((await send('/%C3%A9')).headers['ratelimit-policy']).toMatch(/^"GET \/\?~[\w-]{21}";q=1;w=60$/)
  })

  test('of one pattern under several constraints are told apart', async () => {
    await plugin()
    for (const version of ['1.0.0', '2.0.0']) {
      app.get('/', { constraints: { version }, config: { rateLimit: limit(1) } }, async () => version)
    }
    const send = await serve(app)
    const get = async (version: string) => (await send('/', { 'accept-version': version })).status
    expect([await get('1.0.0'), await get('2.0.0'), await get('1.0.0')]).toEqual([200, 200, 429])
  })

  test('are one for a route of several methods', async () => {
    await plugin()
    app.route({
      method: ['GET', 'POST'],
      url: '/',
      config: { rateLimit: limit(3) },
      handler: async () => 'ok',
    })
    expect(await remaining(await serve(app), '/', 'POST /', 'HEAD /')).toEqual(['2', '1', '0'])
  })

  test('apply at their own stage, after the hooks of the route', async () => {
    await plugin()
    const key = byHeader('x-user')
    const preHandler = async (request: { headers: Record<string, unknown> }) => {
      request.headers['x-user'] = 'ada'
    }
    app.get(
      '/',
      { preHandler, config: { rateLimit: { ...limit(5), key, hook: 'preHandler' } } },
      async (request) => request.rateLimit?.key,
    )
    expect(await (await serve(app))('/')).toMatchObject({ body: 'header:x-user:ada' })
  })

  test('may be a limiter made elsewhere', async () => {
    await plugin(limit(5))
    const limiter = new Limiter({ store, name: 'made', ...limit(1) })
    get('/', { limiter })
    expect(await statuses(await serve(app), '/', '/')).toEqual([200, 429])
    expect(await limiter.peek({ key: 'ip:127.0.0.1' })).toMatchObject({ allowed: false })
  })

  test('may be plans', async () => {
    await plugin()
    const plan = ({ headers }: { headers: Record<string, unknown> }) => String(headers['x-plan'])
    get('/', { plans: { free: limit(1), pro: limit(3) }, plan })
    const send = await serve(app)
    const as = async (plan: string) => (await send('/', { 'x-plan': plan })).headers['ratelimit-remaining']
    expect([await as('free'), await as('pro')]).toEqual(['0', '1'])
  })
})

describe('a group', () => {
  test('is one limiter for all its routes', async () => {
    await plugin({ ...limit(9), groups: { login: limit(2) } })
    get('/login', { group: 'login' })
    get('/reset', { group: 'login', replace: true })
    get('/', false)
    const send = await serve(app)
    expect((await send('/login')).body).toBe('["9-per-1m","login"]')
    expect((await send('/reset')).body).toBe('["login"]')
    expect(await statuses(send, '/login', '/reset', '/')).toEqual([429, 429, 200])
  })

  test('inherits from the plugin', async () => {
    await plugin({ global: false, statusCode: 420, groups: { none: limit(0) } })
    get('/', { group: 'none' })
    expect(await statuses(await serve(app), '/')).toEqual([420])
  })
})

describe('a route inherits from the plugin', () => {
  test('its store, its key and what clients are told', async () => {
    const key = byHeader('x-user')
    await plugin({ ...limit(9), key, headers: 'legacy', message: 'Later.', statusCode: 420 })
    get('/', { ...limit(1), name: 'route' })
    const send = await serve(app)
    const as = (user: string) => send('/', { 'x-user': user })
    await as('ada')
    expect(await as('ada')).toMatchObject({ status: 420, body: 'Later.' })
    expect(await as('bob')).toMatchObject({ status: 200, headers: { 'x-ratelimit-remaining': '0' } })
    expect(() => new Limiter({ store, name: 'route', ...limit(1) })).toThrow('SLUICE_DUPLICATE_NAME')
  })

  test('its stage', async () => {
    const seen: (Decision | undefined)[] = []
    await plugin({ global: false, hook: 'preHandler' })
    app.addHook('preValidation', async (request) => void seen.push(request.rateLimit))
    get('/', limit(5))
    expect(await remaining(await serve(app), '/')).toEqual(['4'])
    expect(seen).toEqual([undefined])
  })

  test('its events, its budget and what becomes of a store that fails', async () => {
    const events: unknown[] = []
    const onEvent = (event: object) => void events.push(event)
    const failing = Object.create(store, { consume: { value: () => Promise.reject(new Error('away')) } })
    const logger = { warn: () => {} }
    await plugin({ global: false, store: failing, onStoreError: 'deny', onEvent, logger })
    get('/', limit(5))
    expect(await statuses(await serve(app), '/')).toEqual([503])
    expect(events).toMatchObject([
      { type: 'store-error', limiter: 'GET /' },
      { type: 'decision', limiter: 'GET /' },
    ])
  })

  test.each<[string, RateLimitPluginOptions, Partial<RouteRateLimit>, string]>([
    ['onLimited', { message: 'a', statusCode: 420 }, { onLimited: () => 'b' }, '200 b'],
    ['message', { onLimited: () => 'a' }, { message: 'b' }, '429 b'],
    ['message', { message: 'a', statusCode: 420 }, { message: 'b' }, '420 b'],
    ['statusCode', { message: 'a' }, { statusCode: 421 }, '421 a'],
  ])('a kind of reply, unless it has one: %s', async (_option, ofPlugin, ofRoute, expected) => {
    await plugin({ global: false, ...ofPlugin })
    get('/', { ...limit(0), ...ofRoute } as RouteRateLimit)
    const { status, body } = await (await serve(app))('/')
    expect(`${status} ${body}`).toBe(expected)
  })

  test('nothing where it says undefined', async () => {
    await plugin({ global: false, statusCode: 420 })
    get('/', { ...limit(0), statusCode: undefined })
    expect(await statuses(await serve(app), '/')).toEqual([420])
  })
})

describe('a mistake is an error when the route is added, and names the route:', () => {
  test.each<[unknown, string, string]>([
    [true, 'SLUICE_BAD_OPTION', 'Route GET /items/:id: Option `config.rateLimit` is true'],
    [null, 'SLUICE_BAD_OPTION', 'Route GET /items/:id: Option `config.rateLimit` is null'],
    [{}, 'SLUICE_BAD_OPTION', 'Route GET /items/:id: Option `limit` is undefined'],
    [{ ...limit(-5) }, 'SLUICE_BAD_OPTION', 'Route GET /items/:id: Option `limit` is -5'],
    [{ ...limit(5), limt: 5 }, 'SLUICE_UNKNOWN_OPTION', 'Route GET /items/:id: Unknown option `limt`'],
    [{ ...limit(5), replace: 1 }, 'SLUICE_BAD_OPTION', 'Route GET /items/:id: Option `replace` is 1'],
    [{ ...limit(5), hook: 'onSend' }, 'SLUICE_BAD_OPTION', 'Route GET /items/:id: Option `hook` is "onSend"'],
    [{ group: 'logon' }, 'SLUICE_BAD_OPTION', 'one of the `groups` of the plugin (login)'],
    [{ group: 'login', limit: 5 }, 'SLUICE_BAD_OPTION', 'Route GET /items/:id: Option `limit` is 5'],
    [
      { ...limit(5), name: 'login' },
      'SLUICE_DUPLICATE_NAME',
      'Route GET /items/:id: Option `name` is "login"',
    ],
  ])('%j', async (rateLimit, code, message) => {
    await plugin({ global: false, groups: { login: limit(5) } })
    const add = () => get('/items/:id', rateLimit as RouteRateLimit)
    expect(add).toThrow(expect.objectContaining({ code, message: expect.stringContaining(message) }))
  })

  test('a group where none is defined', async () => {
    await plugin()
    expect(() => get('/', { group: 'login' })).toThrow('(none is defined)')
  })

  test('the place of a bad value', async () => {
    await plugin()
    const add = () => get('/', { plans: { pro: limit(-1) }, plan: 'pro' })
    expect(add).toThrow(expect.objectContaining({ path: ['config', 'rateLimit', 'pro', 'limit'] }))
  })
})
