import Router from '@koa/router'
import Koa, { type Middleware } from 'koa'
import Koa2 from 'koa2'
import { type Send, serve } from '../../testing/test/serve.js'
import { three } from '../test/three.js'
import { Limiter, rateLimit } from './index.js'

const remaining: Middleware = (ctx) => {
  ctx.body = String(ctx.state.rateLimit?.remaining)
}

describe.each([
  ['Koa 3', Koa],
  ['Koa 2', Koa2 as unknown as typeof Koa],
])('with @koa/router, %s', (_, Framework) => {
  /** Serves the application that `mount` fills, and sends it a request for each path; tells their bodies. */
  async function get(paths: string[], mount: (app: Koa, router: Router) => unknown): Promise<string[]> {
    const app = new Framework()
    const router = new Router()
    mount(app, router)
    app.use(router.routes()).use(router.allowedMethods())
    const send = await serve(app.callback())
    const bodies: string[] = []
    for (const path of paths) bodies.push((await send(path, { method: 'GET' })).body)
    return bodies
  }

  test('a limiter counts on a route, on a path, and for a router', async () => {
    const bodies = await get(['/route', '/path', '/all', '/none'], (_app, router) => {
      router.get('/route', three(), remaining)
      router.use('/path', three({ limit: 5 })).get('/path', remaining)
      router.get('/none', remaining)
      const nested = new Router({ prefix: '/all' })
      nested.use('{/*rest}', three({ limit: 9 })).get('/', remaining)
      router.use(nested.routes())
    })
    expect(bodies).toEqual(['2', '4', '8', 'undefined'])
  })

  test('one limiter on application, routers and route charges a request once B41', async () => {
    const limit = three({ limit: 10 })
    const bodies = await get(Array(11).fill('/a/b/item'), (app, router) => {
      const inner = new Router()
      inner.use(limit).get('/item', limit, remaining)
      const outer = new Router()
      outer.use(limit).use('/b', limit, inner.routes())
      router.use(limit).use('/a', outer.routes())
      app.use(limit)
    })
    expect(bodies.slice(0, 10)).toEqual(['9', '8', '7', '6', '5', '4', '3', '2', '1', '0'])
    expect(bodies[10]).toContain('Quota exceeded')
  })

  test('a limiter of the application counts what no route takes, one of a router does not', async () => {
    const paths = ['/nowhere', '/nowhere', '/item']
    const mount = (router: Router) => router.get('/item', remaining)
    expect(await get(paths, (app, router) => [app.use(three()), mount(router)])).toContain('0')
    expect(await get(paths, (_app, router) => [router.use(three()), mount(router)])).toContain('2')
  })

  test('a key may be a parameter of the route', async () => {
    const limit = three({ key: (ctx) => `tenant:${ctx.params.tenant}` })
    const bodies = await get(['/a/x', '/b/x', '/a/y'], (_app, router) => {
      router.get('/:tenant/:item', limit, remaining)
    })
    expect(bodies).toEqual(['2', '2', '1'])
  })

  test('a limiter of the application refuses before parameters are looked up', async () => {
    const looked: string[] = []
    await get(Array(5).fill('/users/7'), (app, router) => {
      app.use(three())
      router.param('id', (id, _ctx, next) => {
        looked.push(id)
        return next()
      })
      router.get('/users/:id', remaining)
    })
    expect(looked).toEqual(['7', '7', '7'])
  })

  test('a refusal that a router throws goes to the error handler of the application', async () => {
    const reasons: unknown[] = []
    await get(Array(4).fill('/item'), (app, router) => {
      app.use((_ctx, next) => next().catch(({ status, decision }) => reasons.push(status, decision.reason)))
      router.get('/item', three({ throws: true }), remaining)
    })
    expect(reasons).toEqual([429, 'quota'])
  })
})

test('a middleware has its limiter, for reset and the like', async () => {
  const limit = three()
  const send = await serve(new Koa().use(limit).use(remaining).callback())
  for (let request = 0; request < 3; request++) await send('/')
  expect((await send('/')).status).toBe(429)
  await limit.limiter.reset('ip:127.0.0.1')
  expect((await send('/')).body).toBe('2')
  const limiter = new Limiter({ limit: 1, window: '1m' })
  expect(rateLimit({ limiter }).limiter).toBe(limiter)
})

describe('the settings for proxies', () => {
  const forwarded = { headers: { 'x-forwarded-for': '198.51.100.7', 'x-real-ip': '198.51.100.8' } }

  test.each<[string, ConstructorParameters<typeof Koa>[0], string | undefined]>([
    ['none', {}, 'SLUICE_UNTRUSTED_FORWARDED_HEADER'],
    ['a proxy, but every address in its header', { proxy: true }, 'SLUICE_TRUSTS_EVERY_PROXY'],
    ['one proxy', { proxy: true, maxIpsCount: 1 }, undefined],
    ['a header that the proxy sets anew', { proxy: true, proxyIpHeader: 'X-Real-IP' }, undefined],
  ])('are checked: %s', async (_, settings, code) => {
    const lines: string[] = []
    const app = new Koa(settings).use(three({ logger: { warn: (line) => lines.push(line) } }))
    const send: Send = await serve(app.callback())
    for (let request = 0; request < 2; request++) await send('/', forwarded)
    expect(lines).toEqual(code ? [expect.stringContaining(`(${code})`)] : [])
  })
})
