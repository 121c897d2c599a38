import type http from 'node:http'
import express, { type ErrorRequestHandler, type Express, type RequestHandler, type Router } from 'express'
import express4 from 'express4'
import { disguised, spellings } from '../../testing/test/path-tricks.js'
import { type Sent, serve } from '../../testing/test/serve.js'
import { three } from '../test/three.js'
import { byHeader, byIp, byUser, compose, type RateLimitOptions } from './index.js'

/** Serves the application; sends it requests, and tells their statuses. */
async function start(app: Express): Promise<(path: string, sent?: Sent) => Promise<number | undefined>> {
  const send = await serve(app)
  return async (path, sent) => (await send(path, sent)).status
}

const ok: RequestHandler = (_req, res) => void res.send('ok')

/** Lets a header or a field of the body replace the method. */
const overrideMethod: RequestHandler = (req, _res, next) => {
  const { _method } = (req.body ?? {}) as { _method?: string }
  req.method = req.get('x-http-method-override') ?? _method ?? req.method
  next()
}

const overridden: Sent[] = [
  { method: 'PUT', headers: { 'x-http-method-override': 'POST' } },
  disguised,
  { method: 'PUT', body: { _method: 'POST' } },
  { method: 'POST' },
]

type Mount = (app: Express, router: Router, limit: RequestHandler) => unknown

const login = (router: Router): Router => router.post('/login', ok).post('/:action', ok)

/** The ways to limit the routes of a router under `/api`. */
const mounts: [string, Mount][] = [
  ['the application', (app, router, limit) => app.use(limit).use('/api', login(router))],
  ['a path', (app, router, limit) => app.use('/api', limit).use('/api', login(router))],
  ['a path, with its router', (app, router, limit) => app.use('/api', limit, login(router))],
  ['the router', (app, router, limit) => app.use('/api', login(router.use(limit)))],
  ['all methods of all paths', (app, router, limit) => app.all(/.*/, limit).use('/api', login(router))],
  ['each route', (app, router, limit) => app.use('/api', router.post(['/login', '/:action'], limit, ok))],
  [
    'each route, in an array',
    (app, router, limit) => app.use('/api', router.post(['/login', '/:action'], [limit, ok])),
  ],
  [
    'all methods of a route',
    (app, router, limit) => {
      router.route('/:action').all(limit).post(ok)
      app.use('/api', router)
    },
  ],
]

describe.each([
  ['Express 5', express],
  ['Express 4', express4 as unknown as typeof express],
])('%s', (_, framework) => {
  test.each(mounts)(
    'a limiter on %s counts every spelling of a path that reaches the handler B29',
    async (_mount, mount) => {
      const app = framework()
      mount(app, framework.Router(), three({ key: (req) => req.originalUrl }))
      const onError: ErrorRequestHandler = (error, _req, res, _next) => void res.sendStatus(error.status)
      const send = await start(app.use(onError))
      const reached: string[] = []
      for (const spelling of spellings) {
        const statuses: unknown[] = []
        for (let request = 0; request < 5; request++) statuses.push(await send(spelling))
        const served = statuses.filter((status) => status === 200).length
        if (served > 0) reached.push(spelling)
        expect([spelling, served]).toEqual([spelling, served > 0 ? 3 : 0])
      }
      expect(reached).toEqual(expect.arrayContaining(['/api/login', '/api/login/', '/api/login?x=1']))
    },
  )

  test.each<[string, (app: Express) => void]>([
    ['a route', (app) => app.post('/login', three(), ok)],
    ['a path', (app) => app.use('/login', three()).post('/login', ok)],
  ])(
    'a limiter on %s counts every spelling of its path that the router takes for it B29',
    async (_name, mount) => {
      const app = framework()
      mount(app)
      const send = await start(app)
      const statuses: (number | undefined)[] = []
      for (const path of ['/login', '/Login', '/LOGIN/', '/login/']) {
        statuses.push(await send(path), await send(path))
      }
      expect(statuses).toEqual([200, 200, 200, 429, 429, 429, 429, 429])
    },
  )

  test.each<[string, (app: Express) => void]>([
    [
      'on a path, before the override',
      (app) => app.use('/login', three(), overrideMethod).post('/login', ok),
    ],
    ['on a path, after the override', (app) => app.use('/login', overrideMethod, three()).post('/login', ok)],
    ['on a route, after the override', (app) => app.use(overrideMethod).post('/login', three(), ok)],
  ])('a request whose method is overridden is counted by a limiter %s B32', async (_name, mount) => {
    const app = framework()
    app.use(framework.json())
    mount(app)
    const send = await start(app)
    const statuses: (number | undefined)[] = []
    for (const sent of overridden) statuses.push(await send('/login', sent))
    expect(statuses).toEqual([200, 200, 200, 429])
  })

  test('a limit by address holds for all the ids that one client makes up for the limit of a route B37', async () => {
    const app = framework()
    const byId = compose(byIp(), byHeader('x-client-id'))
    app.use(three({ name: 'all', limit: 500, window: '15m' }))
    app.get('/item', three({ name: 'route', limit: 120, key: byId }), ok)
    const send = await start(app)
    const clients = Array.from({ length: 20 }, async (_client, id) => {
      let served = 0
      for (let hit = 0; hit < 60; hit++) {
        const status = await send('/item', { method: 'GET', headers: { 'x-client-id': `${id}` } })
        if (status === 200) served += 1
      }
      return served
    })
    const served = await Promise.all(clients)
    expect(served.reduce((sum, count) => sum + count)).toBe(500)
  })

  test('a credential is one client however its header is spelled, where the key is the user B18', async () => {
    const app = framework()
    const authenticate: RequestHandler = (req, _res, next) => {
      const [, token] = /bearer\s+(\S+)/i.exec(req.get('authorization') ?? '') ?? []
      Object.assign(req, { user: token && { id: token } })
      next()
    }
    const user = byUser((req: { user?: { id: string } }) => req.user?.id)
    app.use(authenticate, three({ key: user as RateLimitOptions['key'] }))
    app.get('/item', ok)
    const send = await start(app)
    const spellings = ['Bearer K', 'bearer K', 'Bearer  K', 'xBearer K', ['Bearer K', 'Bearer K']]
    const statuses: (number | undefined)[] = []
    for (const authorization of [...spellings, ...spellings.slice(0, 3)]) {
      // Node.js sends each element of an array as a header line of its own; its types allow that of other headers.
      const headers = { authorization } as http.OutgoingHttpHeaders
      statuses.push(await send('/item', { method: 'GET', headers }))
    }
    expect(statuses).toEqual([200, 200, 200, 429, 429, 429, 429, 429])
    expect(await send('/item', { method: 'GET' })).toBe(200)
  })
})
