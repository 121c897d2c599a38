import Router from '@koa/router'
import Koa, { type Middleware } from 'koa'
import Koa2 from 'koa2'
import { disguised, spellings } from '../../testing/test/path-tricks.js'
import { type Sent, serve } from '../../testing/test/serve.js'
import { three } from '../test/three.js'

const ok: Middleware = (ctx) => {
  ctx.body = 'ok'
}

/** Lets a header replace the method. */
const overrideMethod: Middleware = (ctx, next) => {
  ctx.method = ctx.get('x-http-method-override') || ctx.method
  return next()
}

const overridden: Sent[] = [
  { method: 'PUT', headers: { 'x-http-method-override': 'POST' } },
  { method: 'GET', headers: { 'x-http-method-override': 'POST' } },
  disguised,
  { method: 'POST' },
]

type Mount = (app: Koa, router: Router) => unknown

const login = () => new Router().post('/login', ok).post('/:action', ok)

/** A limit of 3 requests for each spelling. */
const each3 = () => three({ key: (ctx) => ctx.originalUrl })

/** The ways to limit the routes of a router under `/api`. */
const mounts: [string, Mount][] = [
  ['the application', (app, router) => [app.use(each3()), router.use('/api', login().routes())]],
  ['the router', (_app, router) => router.use(each3()).use('/api', login().routes())],
  ['a path', (_app, router) => router.use('/api', each3()).use('/api', login().routes())],
  ['a path, with its routes', (_app, router) => router.use('/api', each3(), login().routes())],
  [
    'all paths of a nested router',
    (_app, router) => {
      const nested = new Router().use('{/*rest}', each3())
      router.use('/api', nested.post('/login', ok).post('/:action', ok).routes())
    },
  ],
  [
    'all paths of a router with a prefix',
    (app) => {
      const nested = new Router({ prefix: '/api' }).use('{/*rest}', each3())
      app.use(nested.post('/login', ok).post('/:action', ok).routes())
    },
  ],
  [
    'a router that tells cases apart',
    (app) => {
      const nested = new Router({ prefix: '/api', sensitive: true }).use(each3())
      app.use(nested.post('/login', ok).post('/:action', ok).routes())
    },
  ],
  [
    'each route',
    (_app, router) => {
      const limit = each3()
      const routes = new Router().post('/login', limit, ok).post('/:action', limit, ok)
      router.use('/api', routes.routes())
    },
  ],
]

describe.each([
  ['Koa 3', Koa],
  ['Koa 2', Koa2 as unknown as typeof Koa],
])('%s', (_, Framework) => {
  /** Serves what `mount` makes of an application and its router. */
  async function start(mount: Mount, before: Middleware[] = []) {
    const app = new Framework()
    app.silent = true
    for (const middleware of before) app.use(middleware)
    const router = new Router()
    mount(app, router)
    return serve(app.use(router.routes()).callback())
  }

  test.each(mounts)(
    'a limiter on %s counts every spelling of a path that reaches the handler B29',
    async (_mount, mount) => {
      const send = await start(mount)
      const reached: string[] = []
      for (const spelling of spellings) {
        const statuses: unknown[] = []
        for (let request = 0; request < 5; request++) statuses.push((await send(spelling)).status)
        const served = statuses.filter((status) => status === 200).length
        if (served > 0) reached.push(spelling)
        expect([spelling, served]).toEqual([spelling, served > 0 ? 3 : 0])
      }
      expect(reached).toEqual(expect.arrayContaining(['/api/login', '/api/login/', '/api/login?x=1']))
    },
  )

  test('spellings of one path share its limit B29', async () => {
    const send = await start((_app, router) => router.post('/login', three(), ok))
    const statuses: unknown[] = []
    for (const path of ['/login', '/Login', '/LOGIN/', '/login/']) {
      statuses.push((await send(path)).status, (await send(path)).status)
    }
    expect(statuses).toEqual([200, 200, 200, 429, 429, 429, 429, 429])
  })

  test.each<[string, Mount, Middleware[]]>([
    [
      'of the application, before the override',
      (app, router) => [app.use(three()), app.use(overrideMethod), router.post('/login', ok)],
      [],
    ],
    [
      'on a path, after the override',
      (_app, router) => router.use('/login', three()).post('/login', ok),
      [overrideMethod],
    ],
    [
      'on a route, after the override',
      (_app, router) => router.post('/login', three(), ok),
      [overrideMethod],
    ],
  ])('a request whose method is overridden is counted by a limiter %s B32', async (_mount, mount, before) => {
    const send = await start(mount, before)
    const statuses: unknown[] = []
    for (const sent of overridden) statuses.push((await send('/login', sent)).status)
    expect(statuses).toEqual([200, 200, 200, 429])
  })

  test.each<[string, (router: Router, limit: Middleware) => unknown]>([
    [
      'a nested router',
      (router, limit) => router.use('/api', new Router().use(limit).post('/login', ok).routes()),
    ],
    [
      'a router with a prefix',
      (router, limit) => router.use(new Router({ prefix: '/api' }).use(limit).post('/login', ok).routes()),
    ],
  ])('a limiter that %s runs for one case of its prefix only is warned of once', async (_mount, mount) => {
    const lines: string[] = []
    const limit = three({ logger: { warn: (line) => lines.push(line) } })
    const send = await start((_app, router) => mount(router, limit))
    for (let request = 0; request < 2; request++) await send('/api/login')
    expect(lines).toEqual([expect.stringContaining('(SLUICE_CASE_SENSITIVE_MOUNT)')])
  })

  test.each(mounts)('a limiter on %s is not warned of', async (_mount, mount) => {
    const warn = jest.spyOn(console, 'warn').mockImplementation(() => {})
    await (await start(mount))('/api/login')
    expect(warn).not.toHaveBeenCalled()
    warn.mockRestore()
  })
})
