import type { ServerHttp2Stream } from 'node:http2'
import { type Exchange, onResponseEnd } from '@sluice/core'
import { failuresOf } from '../../test/collect.js'
import { isRoute, type Limit, plainServer, type Req, type Res } from '../../test/plain-server.js'
import { adapterContract } from './adapter-contract.js'
import { turns } from './poll.js'
import { contractPath, type MakeServer } from './site.js'

adapterContract('an adapter for the bare server of Node.js', plainServer(), { http2: true })

/** An adapter that tells the core something else of a request. */
function telling(changes: (req: Req, res: Res, told: Exchange<Req, Res>) => Partial<Exchange>): MakeServer {
  return plainServer(({ exchange }) => ({
    exchange(req, res, trust) {
      const told = exchange(req, res, trust)
      return Object.create(told, Object.getOwnPropertyDescriptors(changes(req, res, told)))
    },
  }))
}

/** An adapter that lets a request meet other limiters. */
function limiting(which: (req: Req, limits: readonly Limit[]) => readonly Limit[]): MakeServer {
  return plainServer(({ limits }) => ({ limits: (req, site) => which(req, limits(req, site)) }))
}

const bytes = '%s %s: every byte is as it must be B50'

const faults: [fault: string, server: MakeServer, test: string][] = [
  [
    'adds a charset to JSON',
    plainServer(({ refuse }) => ({
      refuse: (res, told) => refuse(res, { ...told, contentType: `${told.contentType}; charset=utf-8` }),
    })),
    bytes,
  ],
  [
    'tells no length',
    plainServer(() => ({
      refuse: (res, told) =>
        void res.writeHead(told.status, { 'Content-Type': told.contentType }).end(told.body),
    })),
    bytes,
  ],
  [
    'adds a header to one of that name',
    telling((_req, res) => ({ setResponseHeader: (name, value) => void res.appendHeader(name, value) })),
    bytes,
  ],
  [
    'does not wait for the decision',
    plainServer(({ pass }) => ({
      async pass(...args) {
        pass(...args).catch(() => {})
        return true
      },
    })),
    'is what the limit admits, of requests that all come at once',
  ],
  [
    'compares paths letter for letter',
    limiting((req, limits) => (isRoute(req) && req.url !== contractPath ? [] : limits)),
    'is counted by a limiter of the %s, whatever its path is spelled like B29',
  ],
  [
    'knows a path by its slash',
    limiting((req, limits) => (req.url?.startsWith('/') ? limits : [])),
    'is the same whether the target is a path or a whole URL',
  ],
  [
    'lets long paths pass',
    limiting((req, limits) => (Number(req.url?.length) > 8192 ? [] : limits)),
    'may have a very long path, which is counted like any other',
  ],
  [
    'limits only what has a handler',
    limiting((req, limits) => (isRoute(req) && req.method === 'GET' ? limits : [])),
    'does not include %s, which a limiter of the application counts B35',
  ],
  [
    'limits HEAD twice',
    plainServer(({ exchange, limits }) => ({
      exchange: (...args) => ({ ...exchange(...args), identity: {} }),
      limits(req, site) {
        const once = limits(req, site)
        return req.method === 'HEAD' ? [...once, ...once] : once
      },
    })),
    'is charged once for a HEAD request, which shares the limit of GET B34',
  ],
  [
    'reads one line of a header',
    telling((_req, _res, told) => ({ header: (name) => told.header(name)?.split(', ')[0] })),
    'is counted by all lines of a header that comes twice',
  ],
  [
    'wraps errors of the handler',
    plainServer(() => ({
      handle: (run) =>
        run().catch((cause) => {
          throw new Error('The handler failed', { cause })
        }),
    })),
    'stays charged when the handler fails, whose error goes to the error path as it is, once',
  ],
  [
    'drops the headers of a stream',
    plainServer(() => ({
      handle(run, _req, res) {
        for (const name of res.getHeaderNames()) res.removeHeader(name)
        return run()
      },
    })),
    'may answer with a stream, whose headers tell of the limit',
  ],
  [
    'decides in another order',
    plainServer(({ pass }) => {
      let requests = 0
      return {
        async pass(...args) {
          if (requests++ % 2 === 0) await turns(5)
          return pass(...args)
        },
      }
    }),
    'are decided one by one, in their order, though they come in one write',
  ],
  [
    'takes a connection for a request',
    telling((req) => ({ identity: req.socket })),
    'may be of several keys in one write',
  ],
  [
    'closes the connection after a denial with a body',
    plainServer(({ refuse }) => ({
      refuse(res, told) {
        if (res.req.method === 'POST') res.shouldKeepAlive = false
        refuse(res, told)
      },
    })),
    'go on after a denial, whose body nobody reads',
  ],
  [
    'closes the connection after a denial',
    plainServer(({ refuse }) => ({
      refuse(res, told) {
        res.shouldKeepAlive = false
        refuse(res, told)
      },
    })),
    'are counted when a connection is kept, which stays open after a denial',
  ],
  [
    'takes a session of HTTP/2 for a request',
    telling((req) => ({ identity: (req as { stream?: { session: object } }).stream?.session ?? req })),
    'are counted over HTTP/2, where they come side by side',
  ],
  [
    'ends the session of a denied request with a body',
    plainServer(({ refuse }) => ({
      refuse(res, told) {
        refuse(res, told)
        const { stream } = res as { stream?: ServerHttp2Stream }
        if (res.req.method === 'POST') stream?.session?.destroy()
      },
    })),
    'go on after a denial over HTTP/2, whose body nobody reads',
  ],
  [
    'handles a request again whose client left',
    plainServer(() => ({
      async handle(run, req) {
        await run()
        if (req.socket.destroyed) await run()
      },
    })),
    'while its key is looked up is counted, as its handler runs',
  ],
  [
    'takes every end of a response for a success',
    telling((_req, res) => ({ onEnd: (listener) => onResponseEnd(res, () => listener(true)) })),
    'in the middle of a streamed reply stays charged',
  ],
  [
    'tells of two ends of a response',
    telling((_req, res) => ({
      onEnd(listener) {
        for (const event of ['finish', 'close']) res.once(event, () => listener(true))
      },
    })),
    'after its reply is asked about once, and others are not',
  ],
  [
    'takes a stream that was reset for finished',
    telling((_req, res) => ({ onEnd: (listener) => void res.once('finish', () => listener(true)) })),
    'by resetting its stream of HTTP/2 stays charged',
  ],
  [
    'tells of no end after an error',
    telling((_req, res) => ({
      onEnd: (listener) => onResponseEnd(res, (finished) => listener(finished && res.statusCode < 500)),
    })),
    'gives back what a request was charged whose handler fails',
  ],
  [
    'does not see that headers went out',
    telling(() => ({ headersSent: false })),
    'a denied request that was answered while the store was asked is not answered again B52',
  ],
  [
    'has the limiter of a route replace that of the application',
    limiting((_req, limits) => limits.slice(-1)),
    'hold both, however many keys a client makes up for the inner one B37',
  ],
]

test.each(faults)('adapterContract finds an adapter that %s', async (_, server, test) => {
  const failures = (make: MakeServer) =>
    failuresOf(test, () => adapterContract('an adapter', make, { http2: true }))
  expect(await failures(server)).toBeGreaterThan(0)
  expect(await failures(plainServer())).toBe(0)
})

test('adapterContract finds an adapter that serves HTTP/2 and does not say so', async () => {
  const test = 'are none over HTTP/2, which reaches no handler and is not counted'
  const failures = (make: MakeServer) => failuresOf(test, () => adapterContract('an adapter', make))
  expect(await failures((build) => plainServer()(build, 'http2'))).toBe(1)
  expect(await failures(plainServer())).toBe(0)
})
