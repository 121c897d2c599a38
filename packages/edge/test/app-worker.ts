import { env, waitUntil } from 'cloudflare:workers'
import { DurableObjectStore, type ObjectNamespace, RateLimitObject } from '../src/cloudflare/index.js'
import { type LimitedHandler, withRateLimit } from '../src/index.js'

/** An object that tells how often it was asked to charge. */
export class CountingObject extends RateLimitObject {
  #calls = 0

  override async fetch(request: Request): Promise<Response> {
    if (request.method === 'GET') return Response.json(this.#calls)
    const text = await request.text()
    if (text.includes('"consume"')) this.#calls += 1
    return super.fetch(new Request(request, { body: text }))
  }
}

// Made when the Worker starts, as users make it.
const objects = env.RATE_LIMITS as ObjectNamespace
const store = new DurableObjectStore(objects, { waitUntil })
const options = {
  store,
  limit: 500,
  window: '1d',
  algorithm: 'fixed-window',
  timeoutMs: 10_000,
  onStoreError: 'deny',
  denyStaleMs: 0,
  key: (request: Request) => `${request.headers.get('x-id')}`,
} as const
/** A WebSocket that says back what it hears. */
function upgrade(): Response {
  const [client, server] = Object.values(
    new (globalThis as unknown as { WebSocketPair: new () => Record<string, WorkerSocket> }).WebSocketPair(),
  ) as [WorkerSocket, WorkerSocket]
  server.accept()
  server.addEventListener('message', ({ data }) => server.send(data))
  server.addEventListener('close', () => server.close())
  return new Response(null, { status: 101, webSocket: client } as ResponseInit)
}

interface WorkerSocket {
  accept(): void
  send(data: string): void
  close(): void
  addEventListener(type: 'message' | 'close', listener: (event: { data: string }) => void): void
}

const handlers: Record<string, LimitedHandler> = {
  '/exact': withRateLimit(() => new Response('ok'), { ...options, name: 'exact' }),
  '/leased': withRateLimit(() => new Response('ok'), { ...options, name: 'leased', reserve: { max: 50 } }),
  '/socket': withRateLimit(upgrade, { ...options, name: 'socket' }),
  '/redirect': withRateLimit(() => Response.redirect('https://a.example/', 302), {
    ...options,
    name: 'redirect',
  }),
  '/refunded': withRateLimit(() => new Response('ok'), {
    ...options,
    name: 'refunded',
    refundWhen: () => true,
  }),
}

/** `/calls` tells how often the object of `x-id` was asked; the others are limited. */
export default {
  async fetch(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url)
    if (pathname === '/calls') {
      const stub = objects.get(objects.idFromName(`${request.headers.get('x-id')}`) as never)
      return (stub as unknown as { fetch(url: string): Promise<Response> }).fetch('https://sluice/')
    }
    return (handlers[pathname] as LimitedHandler)(request)
  },
}
