import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import {
  type Decision,
  type Exchange,
  HttpLimiter,
  joinHeader,
  onResponseEnd,
  type RateLimitOptions,
  type Refusal,
} from '@sluice/core'
import { contractPath, type MakeServer, type Site } from '../src/adapter-contract/site.js'

export type Req = http.IncomingMessage
export type Res = http.ServerResponse

/** A limiter of a site; tells whether the request may go on. */
export type Limit = (req: Req, res: Res) => Promise<boolean>

type Options = RateLimitOptions<Req, [req: Req, res: Res], Res>

/** What there is to an adapter for the bare server of Node.js. */
export interface PlainAdapter {
  exchange(req: Req, res: Res, trust: Site['trust']): Exchange<Req, Res>
  refuse(res: Res, refusal: Refusal): void
  /** The limiters that a request meets, in their order. */
  limits(req: Req, site: Site): readonly Limit[]
  /** Whether all of them let a request go on. */
  pass(limits: readonly Limit[], req: Req, res: Res): Promise<boolean>
  /** Runs the handler. */
  handle(run: () => Promise<void>, req: Req, res: Res): Promise<void>
}

const right: PlainAdapter = {
  exchange: (req, res, trust) => ({
    request: req,
    response: res,
    identity: req,
    method: req.method ?? '',
    ip: addressOf(req, trust),
    trustsEveryProxy: trust === 'everyone',
    trustsNoProxy: trust === undefined,
    get gone() {
      return req.socket?.destroyed === true
    },
    get headersSent() {
      return res.headersSent
    },
    header: (name) => joinHeader(req.headers[name]),
    responseHeader: (name) => joinHeader(res.getHeader(name)),
    setResponseHeader: (name, value) => void res.setHeader(name, value),
    onEnd: (listener) => onResponseEnd(res, listener),
  }),
  refuse(res, { status, contentType, body }) {
    res
      .writeHead(status, { 'Content-Type': contentType, 'Content-Length': Buffer.byteLength(body) })
      .end(body)
  },
  limits(req, { app = [], group = [], route = [] }) {
    return [...app, ...(isRoute(req) ? [...group, ...route] : [])] as Limit[]
  },
  async pass(limits, req, res) {
    for (const limit of limits) if (!(await limit(req, res))) return false
    return true
  },
  handle: (run) => run(),
}

/** Serves sites with an adapter that is right but for what is given. */
export function plainServer(
  changes: (right: PlainAdapter) => Partial<PlainAdapter> = () => ({}),
): MakeServer {
  const adapter = { ...right, ...changes(right) }
  return async (build, protocol) => {
    const handled: (Decision | undefined)[] = []
    const errors: unknown[] = []
    const decisions = new WeakMap<Req, Decision>()
    const rateLimit = (options: Options): Limit => {
      const limiter = new HttpLimiter(options)
      return async (req, res) => {
        const { decision, refusal, proceed } = await limiter.handle(adapter.exchange(req, res, site.trust))
        decisions.set(req, decision)
        if (refusal && !adapter.exchange(req, res, site.trust).headersSent) {
          if (options.onLimited) await options.onLimited(req, res, decision)
          else adapter.refuse(res, refusal)
        }
        return proceed
      }
    }
    const site = build({
      rateLimit: (options) => rateLimit(options as Options),
      onLimited:
        (reply): Options['onLimited'] =>
        async (_req, res, decision) => {
          const custom = await reply(decision)
          if (custom) res.writeHead(custom.status).end(custom.body)
        },
    })

    async function respond(req: Req, res: Res): Promise<void> {
      for (const [name, value] of Object.entries(site.responseHeaders ?? {})) res.setHeader(name, value)
      site.before?.(res)
      if (!(await adapter.pass(adapter.limits(req, site), req, res))) return
      if (!isRoute(req) || !['GET', 'HEAD'].includes(req.method ?? '')) return void res.writeHead(404).end()
      const run = async (): Promise<void> => {
        handled.push(decisions.get(req))
        const answer = await site.handler?.()
        if (answer instanceof Readable) answer.pipe(res)
        else if (!res.headersSent) res.writeHead(Number(answer ?? 200)).end('ok')
      }
      await adapter.handle(run, req, res)
    }

    const listener = (req: Req, res: Res): void => {
      respond(req, res).catch((error) => {
        errors.push(error)
        if (!res.headersSent) res.writeHead(500).end('failed')
      })
    }
    const server = protocol === 'http2' ? http2.createServer(listener as never) : http.createServer(listener)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return {
      port: (server.address() as AddressInfo).port,
      handled,
      errors,
      close: () => new Promise((resolve) => server.close(() => resolve())),
    }
  }
}

/** Case, a slash at the end and an origin in front do not matter. */
export function isRoute({ url = '' }: Req): boolean {
  const path = url.replace(/^https?:\/\/[^/]*/, '').replace(/[?#].*$/, '')
  return path.replace(/\/$/, '').toLowerCase() === contractPath
}

function addressOf(req: Req, trust: Site['trust']): string | undefined {
  const forwarded = joinHeader(req.headers['x-forwarded-for'])?.split(/\s*,\s*/)
  return (trust && forwarded?.at(trust === 'everyone' ? 0 : -1)) ?? req.socket.remoteAddress
}
