import type { FastifyInstance } from 'fastify'
import { remaining, type Send, serve, statuses } from '../test/serve.js'
import { app, limited, routes, store, window } from '../test/site.js'
import { byUser, Limiter, rateLimit, rateLimitPlugin } from './index.js'

describe('a plugin with global limits', () => {
  test('counts the requests of all routes together, and tells the handler', async () => {
    await app.register(rateLimitPlugin, limited(2))
    app.get('/a', async (request) => ({ left: request.rateLimit?.remaining }))
    routes(app, '/b')
    const send = await serve(app)
    expect(await send('/a')).toMatchObject({ status: 200, body: '{"left":1}' })
    expect(await statuses(send, '/b', '/a', '/b')).toEqual([200, 429, 429])
  })

  test.each(['onRequest', 'preParsing', 'preValidation', 'preHandler'] as const)(
    'limits at the stage %s, routes and unknown URLs, whatever the body',
    async (hook) => {
      await app.register(rateLimitPlugin, limited(3, { hook }))
      app.post('/echo', async (request) => request.body)
      const send = await serve(app)
      const json = { 'content-type': 'application/json' }
      expect(await send('POST /echo', json, '{"a":1}')).toMatchObject({ status: 200, body: '{"a":1}' })
      expect(await statuses(send, '/none', '/none', '/none')).toEqual([404, 404, 429])
      expect(await send('POST /echo', json, '{"a":1}')).toMatchObject({ status: 429 })
    },
  )

  test('limits routes that were added before it had loaded', async () => {
    app.register(rateLimitPlugin, limited(1))
    routes(app, '/early')
    expect(await statuses(await serve(app), '/early', '/early')).toEqual([200, 429])
  })

  test('counts by user at a stage after authentication', async () => {
    app.addHook('onRequest', async (request) => {
      Object.assign(request, { user: request.headers.authorization })
    })
    const key = byUser((request) => (request as { user?: string }).user)
    await app.register(rateLimitPlugin, limited(1, { hook: 'preHandler', key }))
    routes(app, '/')
    const send = await serve(app)
    const asUser = async (authorization: string) => (await send('/', { authorization })).status
    expect([await asUser('ada'), await asUser('ada'), await asUser('bob')]).toEqual([200, 429, 200])
  })

  test('counts an unknown method of a known URL, and answers with its headers B35', async () => {
    await app.register(rateLimitPlugin, limited(1))
    routes(app, '/items')
    const send = await serve(app)
    expect(await send('POST /items')).toMatchObject({
      status: 404,
      headers: { 'ratelimit-remaining': '0' },
    })
    expect(await send('POST /items')).toMatchObject({ status: 429, headers: { 'retry-after': '60' } })
  })

  test.each<[string, (app: FastifyInstance) => void]>([
    ['the handler of Fastify', () => {}],
    [
      'a handler of its own',
      (app) => void app.setNotFoundHandler((_request, reply) => reply.code(404).send('?')),
    ],
    [
      'a handler with a hook',
      (app) =>
        void app.setNotFoundHandler({ preHandler: async () => {} }, (_request, reply) =>
          reply.code(404).send('?'),
        ),
    ],
  ])('counts guesses of unknown URLs, answered by %s B35', async (_handler, setHandler) => {
    await app.register(rateLimitPlugin, limited(2))
    setHandler(app)
    const send = await serve(app)
    expect(await statuses(send, '/a', '/b', '/c', '/d', 'POST /e')).toEqual([404, 404, 429, 429, 429])
  })

  test('charges a request once that a handler passes to the not-found handler', async () => {
    await app.register(rateLimitPlugin, limited(5, { hook: 'preHandler' }))
    app.get('/gone', async (_request, reply) => {
      reply.callNotFound()
      return reply
    })
    expect(await remaining(await serve(app), '/gone', '/gone')).toEqual(['4', '3'])
  })

  test.each<[string, (app: FastifyInstance) => void]>([
    [
      'an async handler',
      (app) => {
        app.get('/', async () => 'ok')
      },
    ],
    [
      'a handler that sends',
      (app) => {
        app.get('/', (_request, reply) => void reply.send('ok'))
      },
    ],
    [
      'hooks with callbacks',
      (app) => {
        app.addHook('preHandler', (_request, _reply, done) => done())
        app.get('/', { onRequest: (_request, _reply, done) => done() }, (_request, reply) => {
          setImmediate(() => reply.send('ok'))
        })
      },
    ],
    [
      'a stream',
      (app) => {
        app.get('/', (_request, reply) => void reply.send(new Blob(['o', 'k']).stream()))
      },
    ],
  ])('limits %s', async (_kind, add) => {
    await app.register(rateLimitPlugin, limited(1))
    add(app)
    const send = await serve(app)
    expect(await send('/')).toMatchObject({
      status: 200,
      body: 'ok',
      headers: { 'ratelimit-remaining': '0' },
    })
    expect(await send('/')).toMatchObject({ status: 429 })
  })
})

describe('the options of the plugin', () => {
  test.each<[object, string, string]>([
    [{}, 'SLUICE_BAD_OPTION', 'Option `limit` is undefined'],
    [{ limit: 5 }, 'SLUICE_BAD_DURATION', '`window`'],
    [{ ...window, limt: 5 }, 'SLUICE_UNKNOWN_OPTION', '`limt`'],
    [{ ...window, limit: 5, global: 'yes' }, 'SLUICE_BAD_OPTION', 'Option `global` is "yes"'],
    [{ ...window, limit: 5, hook: 'onSend' }, 'SLUICE_BAD_OPTION', 'Option `hook` is "onSend"'],
    [{ ...window, limit: 5, groups: 'login' }, 'SLUICE_BAD_OPTION', 'Option `groups` is "login"'],
    [{ ...window, limit: 5, groups: { login: {} } }, 'SLUICE_BAD_OPTION', 'Group "login": Option `limit`'],
    [{ global: false, limit: 5 }, 'SLUICE_UNKNOWN_OPTION', '`limit` in rateLimitPlugin with `global: false`'],
  ])('%j are refused at the start', async (options, code, message) => {
    app.register(rateLimitPlugin, options)
    await expect(app.ready()).rejects.toMatchObject({ code, message: expect.stringContaining(message) })
  })

  test('global: false needs none, and limits nothing by itself', async () => {
    await app.register(rateLimitPlugin, { global: false })
    routes(app, '/')
    expect(await serve(app).then((send) => send('/'))).not.toHaveProperty('headers.ratelimit')
  })

  test('may be a limiter made elsewhere, beside a store for the routes', async () => {
    const limiter = new Limiter({ store, name: 'all', ...window, limit: 5 })
    await app.register(rateLimitPlugin, { limiter, store })
    app.get('/', { config: { rateLimit: { name: 'route', ...window, limit: 2 } } }, async () => 'ok')
    expect(await statuses(await serve(app), '/', '/', '/')).toEqual([200, 200, 429])
    expect(() => new Limiter({ store, name: 'route', ...window, limit: 2 })).toThrow('SLUICE_DUPLICATE_NAME')
  })
})

describe('app.rateLimit()', () => {
  test('makes a hook that inherits from the plugin', async () => {
    await app.register(rateLimitPlugin, { global: false, store, statusCode: 420 })
    const preHandler = app.rateLimit({ name: 'hook', ...window, limit: 1 })
    app.get('/', { preHandler }, async () => 'ok')
    const send = await serve(app)
    expect(await statuses(send, '/', '/')).toEqual([200, 420])
    await preHandler.limiter.reset('ip:127.0.0.1')
    expect(await statuses(send, '/')).toEqual([200])
    expect(() => new Limiter({ store, name: 'hook', ...window, limit: 1 })).toThrow('SLUICE_DUPLICATE_NAME')
  })

  test('adds to the global limits on the not-found handler', async () => {
    await app.register(rateLimitPlugin, limited(4))
    const preHandler = app.rateLimit({ name: 'unknown', ...window, limit: 1 })
    app.setNotFoundHandler({ preHandler }, (_request, reply) => reply.code(404).send())
    routes(app, '/')
    expect(await statuses(await serve(app), '/a', '/b', '/', '/', '/')).toEqual([404, 429, 200, 200, 429])
  })
})

describe('closing the application', () => {
  test('closes the limiters that the plugin made, and no limiter or store that it was given', async () => {
    const given = new Limiter({ store, name: 'given', ...window, limit: 5 })
    await app.register(rateLimitPlugin, limited(5, { groups: { login: { ...window, limit: 5 } } }))
    app.get('/', { config: { rateLimit: { name: 'route', ...window, limit: 5 } } }, async () => 'ok')
    app.get('/given', { config: { rateLimit: { limiter: given } } }, async () => 'ok')
    app.addHook('onRequest', app.rateLimit({ name: 'hook', ...window, limit: 5 }))
    const send = await serve(app)
    expect(await statuses(send, '/', '/given')).toEqual([200, 200])
    await app.close()
    for (const name of ['default', 'login', 'route', 'hook']) {
      const limiter = new Limiter({ store, name, ...window, limit: 5 })
      await expect(limiter.consume({ key: 'a' })).resolves.toMatchObject({ allowed: true })
    }
    await expect(given.consume({ key: 'a' })).resolves.toMatchObject({ allowed: true })
  })

  test('lets requests that have begun end under their limits', async () => {
    await app.register(rateLimitPlugin, limited(5))
    let leave = (): void => {}
    const held = new Promise<void>((resolve) => {
      leave = resolve
    })
    let reach = (): void => {}
    const reached = new Promise<void>((resolve) => {
      reach = resolve
    })
    app.get(
      '/',
      {
        preHandler: async () => {
          reach()
          await held
        },
        config: { rateLimit: { ...window, limit: 5, hook: 'preHandler' } },
      },
      async () => 'ok',
    )
    const send: Send = await serve(app)
    const answer = send('/')
    await reached
    const closed = app.close()
    leave()
    expect(await answer).toMatchObject({ status: 200, headers: { 'ratelimit-remaining': '4' } })
    await closed
  })
})

test('the hook of rateLimit() and the plugin add up', async () => {
  await app.register(rateLimitPlugin, limited(5))
  app.get('/', { preHandler: rateLimit({ store, name: 'route', ...window, limit: 3 }) }, async (request) =>
    request.rateLimit?.policies.map(({ name }) => name),
  )
  expect(await (await serve(app))('/')).toMatchObject({ body: '["5-per-1m","route"]' })
})
