import express, { type ErrorRequestHandler, type Express, type RequestHandler } from 'express'
import express4 from 'express4'
import { serve } from '../../testing/test/serve.js'
import { three } from '../test/three.js'
import { byUser, Limiter, type RateLimitOptions, rateLimit } from './index.js'

const remaining: RequestHandler = (req, res) => void res.send(String(req.rateLimit?.remaining))

describe.each([
  ['Express 5', express],
  ['Express 4', express4 as unknown as typeof express],
])('%s', (_, framework) => {
  /** Serves the application that `mount` fills, and sends it a request for each path; tells their bodies. */
  async function get(paths: string[], mount: (app: Express) => unknown): Promise<string[]> {
    const app = framework()
    mount(app)
    const send = await serve(app)
    const bodies: string[] = []
    for (const path of paths) bodies.push((await send(path, { method: 'GET' })).body)
    return bodies
  }

  test.each<[string, (app: Express, limit: RequestHandler) => unknown]>([
    ['for a router', (app, limit) => app.use(framework.Router().use(limit).get('/item', remaining))],
    ['in an array of handlers', (app, limit) => app.get('/item', [limit, remaining])],
    ['in one of several arrays', (app, limit) => app.get('/item', [limit], [remaining])],
    ['on all methods', (app, limit) => app.all('/item', limit).get('/item', remaining)],
    ['on a route object', (app, limit) => app.route('/item').all(limit).get(remaining)],
    ['on a method of a route object', (app, limit) => app.route('/item').get(limit, remaining)],
    ['on a regular expression', (app, limit) => app.get(/^\/it/, limit, remaining)],
  ])('a limiter counts %s', async (_place, mount) => {
    const bodies = await get(Array(4).fill('/item'), (app) => mount(app, three()))
    expect(bodies.slice(0, 3)).toEqual(['2', '1', '0'])
    expect(bodies[3]).toContain('quota-exceeded')
  })

  test('one limiter on application, routers, sub-application and route charges a request once B41', async () => {
    const bodies = await get(Array(11).fill('/a/b/c/item'), (app) => {
      const limit = three({ limit: 10 })
      const nested = framework().use(limit)
      nested.get('/item', limit, [limit, remaining])
      const inner = framework.Router().use(limit).use('/c', limit, nested)
      const outer = framework.Router().use(limit, limit).use('/b', inner)
      app.use(limit).use('/a', limit, outer)
    })
    expect(bodies.slice(0, 10)).toEqual(['9', '8', '7', '6', '5', '4', '3', '2', '1', '0'])
    expect(bodies[10]).toContain('quota-exceeded')
  })

  test('routes that a request passes on the way to its own charge it too, each limiter once', async () => {
    const bodies = await get(['/item', '/item'], (app) => {
      const limit = three()
      const pass: RequestHandler = (_req, _res, next) => next('route')
      app.get('/item', limit, pass).get('/:any', limit, remaining)
    })
    expect(bodies).toEqual(['2', '1'])
  })

  test('a limiter of a route is asked after `app.param`, one of the application before it', async () => {
    const looked: string[] = []
    const bodies = await get(['/users/7', '/users/8', '/users/7', '/users/9', '/users/9'], (app) => {
      const user = byUser((req: { user?: string }) => req.user)
      app.use(three({ name: 'app' }))
      app.param('id', (req, _res, next, id) => {
        looked.push(id)
        Object.assign(req, { user: id })
        next()
      })
      const limit = three({ name: 'user', limit: 2, key: user as RateLimitOptions['key'] })
      app.get(
        '/users/:id',
        limit,
        (req, res) => void res.send(req.rateLimit?.policies.at(-1)?.remaining.toString()),
      )
    })
    expect(bodies.slice(0, 3)).toEqual(['1', '1', '0'])
    expect(looked).toEqual(['7', '8', '7'])
  })

  test('a key may be a parameter of an outer router, with mergeParams', async () => {
    const bodies = await get(['/a/items/1', '/b/items/1', '/a/items/2'], (app) => {
      const items = framework.Router({ mergeParams: true })
      const key = (req: { params: object }) => `tenant:${(req.params as { tenant: string }).tenant}`
      items.use(three({ key })).get('/:item', remaining)
      app.use('/:tenant/items', items)
    })
    expect(bodies).toEqual(['2', '2', '1'])
  })

  test('errors pass the limiters by, uncounted, to the error handlers, which see the decision', async () => {
    const seen: unknown[] = []
    const failure = new Error('from the handler')
    const bodies = await get(['/fails', '/item'], (app) => {
      const limit = three()
      const onError: ErrorRequestHandler = (error, req, res, _next) => {
        seen.push(error, req.rateLimit?.remaining)
        res.status(500).send('failed')
      }
      app.use(three({ name: 'first' }))
      app.get('/fails', (_req, _res, next) => next(failure))
      app.use(limit, onError)
      app.get('/item', limit, remaining)
    })
    expect(bodies).toEqual(['failed', '1'])
    expect(seen).toEqual([failure, 2])
  })

  test('a limiter among the error handlers is no error handler', async () => {
    const onError: ErrorRequestHandler = (_error, _req, res, _next) => void res.status(500).send('handled')
    const bodies = await get(['/'], (app) => {
      app.get('/', (_req, _res, next) => next(new Error('fails')))
      app.use(three({ limit: 0 }), onError)
    })
    expect(bodies).toEqual(['handled'])
  })

  test('an error of a function of the request goes to the error handler, coded', async () => {
    const bodies = await get(['/', '/'], (app) => {
      app.use(three({ key: () => Promise.reject(new Error('no such account')) }))
      const onError: ErrorRequestHandler = (error, _req, res, _next) => void res.status(500).send(error.code)
      app.use(onError)
    })
    expect(bodies).toEqual(['SLUICE_REQUEST_FUNCTION', 'SLUICE_REQUEST_FUNCTION'])
  })

  test.each<[string, (make: () => RequestHandler) => RequestHandler]>([
    ['is called', (make) => (req, res, next) => make()(req, res, next)],
    [
      'waits for its options',
      (make) => (req, res, next) => {
        void Promise.resolve().then(() => make()(req, res, next))
      },
    ],
    [
      'builds a router around it',
      (make) => (req, res, next) => framework.Router().use(make())(req, res, next),
    ],
  ])('a limiter made in a handler that %s is warned of once', async (kind, handler) => {
    const lines: string[] = []
    const logger = { warn: (line: string) => lines.push(line) }
    const name = `${kind}, ${framework === express ? 5 : 4}`
    const bodies = await get(Array(4).fill('/'), (app) => {
      app.use(handler(() => three({ name, logger }))).get('/', remaining)
    })
    expect(bodies).toEqual(['2', '2', '2', '2'])
    expect(lines).toEqual([expect.stringContaining('(SLUICE_MADE_IN_HANDLER)')])
  })

  test.each<[unknown, string | undefined]>([
    [undefined, 'SLUICE_UNTRUSTED_FORWARDED_HEADER'],
    [false, 'SLUICE_UNTRUSTED_FORWARDED_HEADER'],
    [0, 'SLUICE_UNTRUSTED_FORWARDED_HEADER'],
    [true, 'SLUICE_TRUSTS_EVERY_PROXY'],
    [1, undefined],
    ['loopback', undefined],
    [() => true, undefined],
  ])('the setting for proxies is checked: `trust proxy` %p', async (setting, code) => {
    const lines: string[] = []
    const app = framework()
    if (setting !== undefined) app.set('trust proxy', setting)
    app.use(three({ logger: { warn: (line) => lines.push(line) } }), remaining)
    const send = await serve(app)
    for (let request = 0; request < 2; request++)
      await send('/', { headers: { 'x-forwarded-for': '198.51.100.7' } })
    expect(lines).toEqual(code ? [expect.stringContaining(`(${code})`)] : [])
  })
})

test('a middleware has its limiter, for reset and the like', async () => {
  const limit = three()
  const send = await serve(express().use(limit, remaining))
  for (let request = 0; request < 3; request++) await send('/')
  expect((await send('/')).status).toBe(429)
  await limit.limiter.reset('ip:127.0.0.1')
  expect((await send('/')).body).toBe('2')
  const limiter = new Limiter({ limit: 1, window: '1m' })
  expect(rateLimit({ limiter }).limiter).toBe(limiter)
})
