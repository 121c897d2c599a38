import { waitUntil } from 'cloudflare:workers'
import {
  type Decision,
  Limiter,
  type LimiterOptions,
  type Policy,
  type RequestContext,
  type Store,
} from '@sluice/core'
import { encodeCall, type Question } from '../src/cloudflare/wire.js'
import { decisionOf, type FetchHandler, type RateLimitOptions, rateLimit } from '../src/index.js'
import { addressFor, siteHandler, withSiteHeaders } from './fetch-site.js'
import { decode, encode, type Naming } from './rpc.js'

interface Env {
  /** The process of the tests. */
  readonly NODE: { fetch(url: string, init: { method: string; body: string }): Promise<Response> }
}

/** A site, with its limiters by their place in `limiters`. */
interface SiteData {
  readonly id: number
  readonly trust: 'one-hop' | 'everyone' | undefined
  readonly responseHeaders: Readonly<Record<string, string>> | undefined
  readonly limiters: readonly object[]
  readonly app: readonly number[]
  readonly group: readonly number[]
  readonly route: readonly number[]
}

let node: Env['NODE']
/** Calls to Node.js that are under way. */
let underWay = 0
const sites = new Map<string, FetchHandler>()
const stores = new Map<unknown, Store>()
const limiters = new Map<unknown, Limiter>()
const plans = new Map<unknown, unknown>()

const naming: Naming = {
  name(value) {
    if (value instanceof Request) {
      return {
        $request: { method: value.method, url: value.url, headers: Object.fromEntries(value.headers) },
      }
    }
    if (value instanceof Response) return { $response: { status: value.status } }
    if (value instanceof Error) {
      const { message, cause, code, id } = value as Error & { code?: string; id?: number }
      return { $error: id === undefined ? { message, code, ...named(cause) } : { id } }
    }
    if ('header' in value) {
      const { ip, plan } = value as RequestContext
      return { $context: { ip, plan } }
    }
    return undefined
  },
  find(value) {
    if ('$fn' in value) return (...args: unknown[]) => call(`fn/${value.$fn}`, args)
    if ('$store' in value) {
      if (!stores.has(value.$store))
        stores.set(value.$store, storeOf(`store/${value.$store}`, value.shared as boolean))
      return stores.get(value.$store)
    }
    if ('$limiter' in value) {
      if (!limiters.has(value.$limiter)) {
        limiters.set(value.$limiter, new Limiter(value.options as LimiterOptions & Partial<Policy>))
      }
      return limiters.get(value.$limiter)
    }
    if ('$plans' in value) {
      if (!plans.has(value.$plans)) plans.set(value.$plans, value.value)
      return plans.get(value.$plans)
    }
    if ('$error' in value) return Object.assign(new Error('of Node.js'), value.$error)
    return undefined
  },
}

function named(cause: unknown): object {
  return cause instanceof Error ? { cause: naming.name?.(cause) } : {}
}

/** Makes a call to Node.js, though the response may have gone out. */
function ask<T>(path: string, body: string, read: (answer: Response) => Promise<T>): Promise<T> {
  underWay += 1
  const made = node
    .fetch(`http://node/${path}`, { method: 'POST', body })
    .then(read)
    .finally(() => {
      underWay -= 1
    })
  waitUntil(made.catch(() => {}))
  return made
}

async function valueFrom(answer: Response): Promise<unknown> {
  const value = decode(await answer.text(), naming)
  if (answer.ok) return value
  throw value
}

function call(path: string, args: unknown): Promise<unknown> {
  return ask(path, encode(args, naming), valueFrom)
}

/** What limiters tell of, which the tests hear once a request was served. */
const heard: (() => unknown)[] = []

async function tellHeard(): Promise<void> {
  for (const tell of heard.splice(0)) await tell()
}

function storeOf(path: string, shared: boolean): Store {
  const tell = <T>(question: Question): Promise<T> =>
    ask(path, encodeCall({ ...question, notAfterUs: 0 }), valueFrom) as Promise<T>
  return {
    shared,
    consume: (checks) => tell({ method: 'consume', checks }),
    peek: (checks) => tell({ method: 'peek', checks }),
    refund: (refunds) => tell({ method: 'refund', refunds }),
    reset: (keys) => tell({ method: 'reset', keys }),
    close: async () => {},
  }
}

function build(site: SiteData): FetchHandler {
  const limits = site.limiters.map((options) => {
    const { replyOf, ...given } = options as RateLimitOptions & {
      replyOf?: (decision: Decision) => Promise<ReplyData>
    }
    const onLimited: RateLimitOptions['onLimited'] =
      replyOf &&
      (async (...args) => {
        const custom = await replyOf(args.at(-1) as Decision)
        return custom && new Response(custom.body, { status: custom.status })
      })
    const { onEvent } = given
    const refusalHeaders = given.onLimited || onLimited ? undefined : site.responseHeaders
    return rateLimit({
      ...given,
      ...(onLimited && { onLimited }),
      ...(onEvent && { onEvent: (event) => void heard.push(() => onEvent(event)) }),
      ...(refusalHeaders && { refusalHeaders }),
      address: addressFor(site.trust),
    })
  })
  const at = (places: readonly number[]) => places.map((place) => limits[place])
  const lists = { app: at(site.app), group: at(site.group), route: at(site.route) }
  return siteHandler(lists, async (request) => {
    const answer = await ask(`handler/${site.id}`, encode(decisionOf(request), naming), async (answer) =>
      answer.headers.get('kind') === 'stream'
        ? new Response(answer.body)
        : new Response('ok', { status: Number((await valueFrom(answer)) ?? 200) }),
    )
    return withSiteHeaders(answer, site.responseHeaders)
  })
}

type ReplyData = { readonly status: number; readonly body: string } | undefined

async function idle(): Promise<Response> {
  do {
    await new Promise((resolve) => setTimeout(resolve, 1))
    await tellHeard()
  } while (underWay > 0)
  return new Response('null')
}

async function make(request: Request): Promise<Response> {
  try {
    const site = decode(await request.text(), naming) as SiteData
    sites.set(String(site.id), build(site))
    await idle()
    return new Response('null')
  } catch (error) {
    return new Response(encode(error, naming), { status: 500 })
  }
}

async function serve(request: Request): Promise<Response> {
  const id = `${request.headers.get('site')}`
  const signal = request.headers.has('gone') ? AbortSignal.abort() : request.signal
  const headers = new Headers(request.headers)
  for (const name of ['site', 'gone', 'target']) headers.delete(name)
  // Without `cf` the address that the header tells is not believed.
  const visited = new Request(`${request.headers.get('target')}`, {
    method: request.method,
    headers,
    signal,
    cf: {},
  } as RequestInit)
  try {
    return await (sites.get(id) as FetchHandler)(visited)
  } catch (error) {
    await call(`error/${id}`, error)
    return new Response('failed', { status: 500 })
  } finally {
    await tellHeard()
  }
}

/** `/-/site` makes a site, `/-/idle` waits until there is nothing left to do, and anything else is for a site. */
export default {
  async fetch(
    request: Request,
    env: Env,
    context: { waitUntil(promise: Promise<unknown>): void },
  ): Promise<Response> {
    node = env.NODE
    const { pathname } = new URL(request.url)
    if (pathname === '/-/site') return make(request)
    if (pathname === '/-/idle') return idle()
    const answer = serve(request)
    // What a handler has begun goes on, though its client leaves.
    context.waitUntil(answer.catch(() => {}))
    return answer
  },
}
