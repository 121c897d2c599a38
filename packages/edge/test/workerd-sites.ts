import { EventEmitter, once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import type { Decision, Limiter, Store } from '@sluice/core'
import { Response as WorkerResponse } from 'miniflare'
import { Sites } from '../../testing/src/adapter-contract/sites.js'
import type { MakeServer, Site } from '../../testing/src/index.js'
import { decodeCall } from '../src/cloudflare/wire.js'
import { decode, encode, type Naming } from './rpc.js'

/** What the limiters were made with that the contract makes itself. */
const optionsOf = new WeakMap<Limiter, object>()
const makeLimiter = Sites.prototype.limiter
Sites.prototype.limiter = function (options) {
  const limiter = makeLimiter.call(this, options)
  optionsOf.set(limiter, { store: this.store, timeoutMs: 10_000, ...options })
  return limiter
}

interface Served {
  readonly site: Site
  readonly handled: (Decision | undefined)[]
  readonly errors: unknown[]
}

/** Sites whose adapter runs in workerd, while their functions, stores and handlers stay in Node.js. */
export class WorkerdSites {
  readonly #named: object[] = []
  readonly #sites: Served[] = []
  readonly #decided = new EventEmitter()
  readonly #naming: Naming = {
    name: (value) => {
      if (typeof value === 'function') return { $fn: this.#place(value) }
      if (value instanceof Error) return { $error: { id: this.#place(value), message: value.message } }
      if (isStore(value)) return { $store: this.#place(value), shared: value.shared }
      const options = optionsOf.get(value as Limiter)
      return options && { $limiter: this.#place(value), options: JSON.parse(encode(options, this.#naming)) }
    },
    find: (value) => {
      if ('$request' in value) return requestOf(value.$request as RequestInit & { url: string })
      if ('$response' in value) return value.$response
      if ('$context' in value) return value.$context
      if (!('$error' in value)) return undefined
      const { id, message, ...rest } = value.$error as { id?: number; message: string }
      return id === undefined ? Object.assign(new Error(message), rest) : this.#named[id]
    },
  }

  /** The service that the worker asks. */
  readonly answer = async (request: { url: string; text(): Promise<string> }): Promise<WorkerResponse> => {
    const [, kind, id = ''] = new URL(request.url).pathname.split('/')
    const text = await request.text()
    try {
      const run = this.#run(`${kind}`, Number(id), text)
      const value = await (kind === 'handler' ? run : settled(run))
      if (value instanceof Readable) {
        return new WorkerResponse(Readable.toWeb(value) as never, { headers: { kind: 'stream' } })
      }
      return new WorkerResponse(encode(value, this.#naming))
    } catch (error) {
      return new WorkerResponse(encode(error, this.#naming), { status: 500 })
    }
  }

  /** @param url where workerd serves */
  readonly server =
    (url: () => URL): MakeServer =>
    async (build) => {
      const limiters: object[] = []
      const site = build({
        rateLimit: (options) => {
          const { plans } = options as { plans?: object }
          const named = plans && { plans: { $plans: this.#place(plans), value: plans } }
          limiters.push({ ...options, ...named, ...('timeoutMs' in options && patience(options.timeoutMs)) })
          return limiters.length - 1
        },
        onLimited: (reply) => ({ reply }),
      })
      const served: Served = { site, handled: [], errors: [] }
      const id = this.#sites.push(served) - 1
      const { trust, responseHeaders, app = [], group = [], route = [] } = site
      const given = limiters.map((options) => {
        const { onLimited, ...others } = options as { onLimited?: { reply: unknown } }
        return onLimited?.reply ? { ...others, replyOf: onLimited.reply } : options
      })
      const data = { id, trust, responseHeaders, limiters: given, app, group, route }
      const made = await fetch(new URL('/-/site', url()), {
        method: 'POST',
        body: encode(data, this.#naming),
      })
      if (!made.ok) throw decode(await made.text(), this.#naming)
      const turns = new WeakMap<object, Promise<unknown>>()
      const server = http.createServer(async (incoming, outgoing) => {
        site.before?.(outgoing)
        // Requests that come in one write reach the worker in their order, each once the last was decided.
        const turn = turns.get(incoming.socket)
        const decided = new Promise((resolve) => {
          outgoing.once('close', resolve)
          void Promise.resolve(turn).then(() => this.#decided.once('decided', resolve))
        })
        turns.set(incoming.socket, decided)
        await turn
        pass(url(), String(id), incoming, outgoing)
      })
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      return {
        port: (server.address() as AddressInfo).port,
        handled: served.handled,
        errors: served.errors,
        close: () => new Promise((resolve) => server.close(() => resolve())),
      }
    }

  #place(value: object): number {
    const place = this.#named.indexOf(value)
    return place === -1 ? this.#named.push(value) - 1 : place
  }

  async #run(kind: string, id: number, text: string): Promise<unknown> {
    if (kind === 'store') {
      const call = decodeCall(text)
      const store = this.#named[id] as Store
      if (call.method === 'consume') this.#decided.emit('decided')
      const options = { timeoutMs: 10_000 }
      if (call.method === 'refund') return store.refund(call.refunds, options)
      if (call.method === 'reset') return store.reset(call.keys, options)
      return store[call.method](call.checks, options)
    }
    const value = decode(text, this.#naming)
    if (kind === 'fn')
      return (this.#named[id] as (...args: unknown[]) => unknown)(...withHeaders(value as unknown[]))
    const { site, handled, errors } = this.#sites[id] as Served
    if (kind === 'error') return void errors.push(value)
    handled.push(value as Decision | undefined)
    return site.handler?.()
  }
}

/** What does not settle by itself would keep a worker alive: by then its limiter has given up. */
async function settled<T>(value: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('does not settle')), 1500)
  })
  return Promise.race([value, late]).finally(() => clearTimeout(timer))
}

/** Time enough for a call to another process, where a test gives a limiter little. */
function patience(timeoutMs: unknown): object {
  return { timeoutMs: Math.max(Number(timeoutMs), 1000) }
}

function isStore(value: object): value is Store {
  return 'consume' in value && 'shared' in value
}

function requestOf({ url, ...init }: RequestInit & { url: string }): Request {
  return new Request(url, init)
}

/** Functions of a request look its headers up in their context. */
function withHeaders(args: unknown[]): unknown[] {
  const [request, context, ...others] = args
  if (!(request instanceof Request) || args.length < 2) return args
  const header = (name: string): string | undefined => request.headers.get(name) ?? undefined
  return [request, { ...(context as object), header }, ...others]
}

/** Sends a request on to workerd, as the network of Cloudflare would, and its answer back. */
function pass(url: URL, site: string, incoming: http.IncomingMessage, outgoing: http.ServerResponse): void {
  const target = new URL(incoming.url ?? '', 'http://127.0.0.1').href
  const headers = { ...incoming.headersDistinct, site, target, 'cf-connecting-ip': '127.0.0.1' }
  for (const name of ['connection', 'content-length', 'transfer-encoding', 'host']) {
    delete (headers as Record<string, unknown>)[name]
  }
  const gone = outgoing.headersSent && { gone: '1' }
  const upstream = http.request(url, {
    method: incoming.method,
    headers: { ...headers, ...gone },
    agent: false,
  })
  const leave = (): void => {
    // A connection that is only half closed workerd keeps.
    if (!outgoing.writableFinished) upstream.socket?.resetAndDestroy()
  }
  outgoing.once('close', leave)
  incoming.socket.setMaxListeners(0).once('close', leave)
  outgoing.once('finish', () => incoming.socket.off('close', leave))
  upstream.on('error', () => outgoing.destroy())
  upstream.on('response', (response) => {
    if (outgoing.headersSent) return void response.resume()
    const lines = response.rawHeaders.flatMap((name, i) =>
      i % 2 === 0 ? [[name, response.rawHeaders[i + 1]]] : [],
    )
    const kept = lines.filter(
      ([name]) => !/^(connection|keep-alive|transfer-encoding|date)$/i.test(`${name}`),
    )
    outgoing.writeHead(response.statusCode ?? 0, response.statusMessage, kept.flat() as string[])
    response.on('data', (chunk) => outgoing.write(chunk))
    // What is done once a response was read must be done before the test looks.
    response.on('end', async () => {
      await fetch(new URL('/-/idle', url), { method: 'POST' })
      outgoing.end()
    })
    response.on('error', () => outgoing.destroy())
  })
  upstream.end()
}
