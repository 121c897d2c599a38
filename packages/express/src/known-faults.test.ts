import http from 'node:http'
import type { AddressInfo } from 'node:net'
import express, { type Express, type RequestHandler } from 'express'
import express4 from 'express4'
import { byHeader, byIp, byUser, compose, MemoryStore, type RateLimitOptions, rateLimit } from './index.js'

const servers: http.Server[] = []
afterEach(() =>
  Promise.all(servers.splice(0).map((server) => new Promise((resolve) => server.close(resolve)))),
)

interface Sent {
  readonly method?: string
  readonly headers?: http.OutgoingHttpHeaders
  readonly body?: object
}

/** Starts the application; sends it requests, one after the other. */
async function start(app: Express): Promise<(path: string, sent?: Sent) => Promise<number | undefined>> {
  const server = app.listen(0, '127.0.0.1')
  servers.push(server)
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  return (path, { method = 'POST', headers = {}, body } = {}) =>
    new Promise((resolve, reject) => {
      const type = body && { 'content-type': 'application/json' }
      const options = { host: '127.0.0.1', port, path, method, headers: { ...type, ...headers } }
      const request = http.request(options, (response) => {
        response.resume().on('end', () => resolve(response.statusCode))
      })
      request.on('error', reject).end(body && JSON.stringify(body))
    })
}

/** A limit of 3 requests, on a clock that stands still. */
const three = (options: Partial<RateLimitOptions> = {}): RequestHandler =>
  rateLimit({
    store: new MemoryStore({ nowUs: () => 1.8e15 }),
    algorithm: 'fixed-window',
    limit: 3,
    window: '1m',
    ...options,
  })

const ok: RequestHandler = (_req, res) => void res.send('ok')

/** Lets a header or a field of the body replace the method. */
const overrideMethod: RequestHandler = (req, _res, next) => {
  const { _method } = (req.body ?? {}) as { _method?: string }
  req.method = req.get('x-http-method-override') ?? _method ?? req.method
  next()
}

const overridden: Sent[] = [
  { method: 'PUT', headers: { 'x-http-method-override': 'POST' } },
  { method: 'GET', headers: { 'x-http-method-override': 'POST' } },
  { method: 'PUT', body: { _method: 'POST' } },
  { method: 'POST' },
]

describe.each([
  ['Express 5', express],
  ['Express 4', express4 as unknown as typeof express],
])('%s', (_, framework) => {
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
