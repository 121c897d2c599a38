import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { type Send, serve, statuses } from '../test/serve.js'
import { MemoryStore, type RateLimitHook, rateLimit, rateLimitPlugin } from './index.js'

let app: FastifyInstance
let store: MemoryStore
/** The codes of what went to the error path, and of warnings. */
let errors: string[]
let warnings: string[]

beforeEach(() => {
  store = new MemoryStore({ nowUs: () => 1.8e15 })
  errors = []
  warnings = []
  app = fastify()
  app.setErrorHandler((error: { code: string }, _request, reply) => {
    errors.push(error.code)
    return reply.code(500).send(error.code)
  })
})
afterEach(() => app.close())

const logger = { warn: (message: string) => void warnings.push(message) }
const window = { algorithm: 'fixed-window', window: '1m' } as const
const limited = (limit: number, name = 'default') => rateLimit({ store, name, limit, ...window, logger })

describe('a hook of rateLimit()', () => {
  test.each(['onRequest', 'preParsing', 'preValidation', 'preHandler'] as const)(
    'limits a route at the stage %s, whatever its body',
    async (stage) => {
      app.post('/', { [stage]: limited(1) }, async (request) => request.body)
      const send = await serve(app)
      const json = { 'content-type': 'application/json' }
      expect(await send('POST /', json, '{"a":1}')).toMatchObject({ status: 200, body: '{"a":1}' })
      expect(await send('POST /', json, '{"a":1}')).toMatchObject({ status: 429 })
    },
  )

  test('limits the not-found handler, whether or not the plugin has loaded B35 B57', async () => {
    app.register(rateLimitPlugin, { global: false })
    app.setNotFoundHandler({ preHandler: limited(2) }, (_request, reply) => reply.code(404).send())
    app.get('/known', async () => 'ok')
    const send = await serve(app)
    expect(await statuses(send, '/a', '/b', '/c', 'POST /known', '/known')).toEqual([404, 404, 429, 429, 200])
  })

  test('carries its limiter', async () => {
    const limit = limited(1)
    app.get('/', { onRequest: limit }, async () => 'ok')
    const send = await serve(app)
    expect(await statuses(send, '/', '/')).toEqual([200, 429])
    await limit.limiter.reset('ip:127.0.0.1')
    expect(await statuses(send, '/')).toEqual([200])
  })
})

type Caller = (
  limit: RateLimitHook,
) => (request: FastifyRequest, reply: FastifyReply, done: () => void) => unknown

/** A hook without a callback, so that Fastify lets it be async. */
const async =
  (call: (limit: RateLimitHook, request: FastifyRequest, reply: FastifyReply) => Promise<unknown>): Caller =>
  (limit) =>
  (request, reply) =>
    call(limit, request, reply)

/** A route behind a hook that calls the limit. */
async function serveCaller(limit: RateLimitHook, caller: Caller, handler: () => unknown): Promise<Send> {
  app.get('/', { preHandler: caller(limit) as RateLimitHook }, async () => handler())
  return serve(app)
}

describe('a hook that calls the hook of rateLimit()', () => {
  test.each<[string, Caller]>([
    ['awaits it', async(async (limit, request, reply) => void (await limit(request, reply)))],
    ['returns it', async(async (limit, request, reply) => limit(request, reply))],
    ['is nothing else', (limit) => (request, reply) => limit(request, reply)],
    ['awaits it among others', async((limit, ...given) => Promise.all([limit(...given), 1]))],
    ['goes on when it settles', (limit) => (request, reply, done) => void limit(request, reply).then(done)],
  ])('and %s, limits', async (_how, caller) => {
    const send = await serveCaller(limited(1), caller, () => 'ok')
    expect(await statuses(send, '/', '/')).toEqual([200, 429])
    expect(errors).toEqual([])
  })

  test.each<[string, Caller]>([
    [
      'ends',
      async(async (limit, request, reply) => {
        void limit(request, reply)
      }),
    ],
    [
      'never calls back',
      (limit) => (request, reply) => {
        void limit(request, reply)
      },
    ],
    [
      'awaits another',
      async(async (limit, request, reply) => {
        void limit(request, reply)
        await null
      }),
    ],
  ])(
    'and %s, without waiting for it, fails each request instead of not limiting it B57',
    async (_how, caller) => {
      let handled = 0
      const send = await serveCaller(limited(1), caller, () => {
        handled += 1
      })
      expect(await statuses(send, '/', '/')).toEqual([500, 500])
      expect(errors).toEqual(['SLUICE_BAD_HOOK', 'SLUICE_BAD_HOOK'])
      expect(handled).toBe(0)
    },
  )

  test('and calls back at once, is warned of where the handler has answered by then B57', async () => {
    const caller: Caller = (limit) => (request, reply, done) => {
      void limit(request, reply)
      done()
    }
    app.get(
      '/',
      { preHandler: caller(limited(1)) as RateLimitHook },
      (_request, reply) => void reply.send('ok'),
    )
    expect(await statuses(await serve(app), '/', '/')).toEqual([200, 200])
    expect(warnings).toEqual([expect.stringMatching(/nobody waits.*\(SLUICE_BAD_HOOK\)$/)])
  })

  test('and drops it, reports its own failure no second time', async () => {
    const key = () => Promise.reject(new Error('no key'))
    const limit = rateLimit({ store, limit: 1, ...window, key })
    const send = await serveCaller(
      limit,
      async(async (limit, request, reply) => {
        void limit(request, reply)
      }),
      () => 'ok',
    )
    expect(await statuses(send, '/')).toEqual([500])
    expect(errors).toEqual(['SLUICE_BAD_HOOK'])
  })
})

describe('rateLimit() called while a request is handled is an error, not an unlimited route:', () => {
  const make = () => rateLimit({ limit: 1, ...window })
  test.each<[string, (app: FastifyInstance) => void]>([
    ['in a hook', (app) => void app.addHook('onRequest', async () => void make())],
    ['in a hook for the body', (app) => void app.addHook('preParsing', async () => void make())],
    ['in a hook of a route', (app) => void app.get('/', { preHandler: async () => void make() }, () => 'ok')],
    ['in a handler', (app) => void app.get('/', () => void make())],
    [
      'in a hook of the not-found handler',
      (app) => void app.setNotFoundHandler({ preHandler: async () => void make() }, () => 'not found'),
    ],
    [
      'called as well',
      (app) =>
        void app.get('/', { preHandler: async (request, reply) => make()(request, reply) }, async () => 'ok'),
    ],
    [
      'passed in place of its result',
      (app) => void app.get('/', { preHandler: rateLimit as never }, () => 'ok'),
    ],
  ])('%s B57', async (_where, add) => {
    add(app)
    expect(await statuses(await serve(app), '/', '/')).toEqual([500, 500])
    expect(errors).toEqual(['SLUICE_MADE_IN_HANDLER', 'SLUICE_MADE_IN_HANDLER'])
  })

  test('as app.rateLimit(), after whatever it waited for B57', async () => {
    await app.register(rateLimitPlugin, { global: false })
    const preHandler = async () => {
      await new Promise(setImmediate)
      app.rateLimit({ limit: 1, ...window })
    }
    app.get('/', { preHandler }, async () => 'ok')
    expect(await statuses(await serve(app), '/')).toEqual([500])
    expect(errors).toEqual(['SLUICE_MADE_IN_HANDLER'])
  })

  test('but not in the hooks of the start', async () => {
    const made: RateLimitHook[] = []
    app.addHook('onRoute', () => void made.push(make()))
    app.addHook('onReady', async () => void made.push(make()))
    app.get('/', { exposeHeadRoute: false }, async () => 'ok')
    await app.ready()
    expect(made).toHaveLength(2)
  })
})

describe('what is registered in place of the plugin is an error at the start:', () => {
  test.each<[string, () => unknown]>([
    ['a hook', () => app.register(limited(1) as never)],
    ['the function that makes it', () => app.register(rateLimit as never, { limit: 1, ...window })],
  ])('%s B57', async (_what, register) => {
    register()
    await expect(app.ready()).rejects.toMatchObject({ code: 'SLUICE_BAD_HOOK' })
  })
})

test('a route with limits that was added before the plugin had loaded fails each request B57', async () => {
  app.register(rateLimitPlugin, { store, limit: 5, ...window })
  app.get('/early', { config: { rateLimit: { limit: 1, ...window } } }, async () => 'ok')
  app.get('/bad', { config: { rateLimit: null as never } }, async () => 'ok')
  app.get('/free', { config: { rateLimit: false } }, async () => 'ok')
  app.after(() => {
    app.get('/late', { config: { rateLimit: { limit: 1, ...window } } }, async () => 'ok')
  })
  expect(await statuses(await serve(app), '/early', '/early', '/bad', '/late', '/late', '/free')).toEqual([
    500, 500, 500, 200, 429, 200,
  ])
  expect(errors).toEqual(Array(3).fill('SLUICE_BAD_HOOK'))
})
