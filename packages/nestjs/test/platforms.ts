import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { DynamicModule, INestApplication } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express'
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify'

/** A response of Express, or a reply of Fastify. */
export type AnyResponse = ServerResponse & {
  readonly raw?: ServerResponse
  header(name: string, value: string): void
}

/** How an application is made. */
export interface PlatformOptions {
  readonly http2?: boolean
  readonly trust?: 'one-hop' | 'everyone' | undefined
  /** Runs before the guards, with each response. */
  readonly begin?: (response: AnyResponse) => void
}

/** What an HTTP server under NestJS is. */
export interface Platform {
  /** The pattern of a route for all paths. */
  readonly anyPath: string
  create(module: DynamicModule, options?: PlatformOptions): Promise<INestApplication>
  /** Sends a reply, unless one went out. */
  send(response: AnyResponse, status: number, body: string | Readable): void
}

const nest = { logger: false, abortOnError: false } as const

export const onExpress: Platform = {
  anyPath: '{*path}',
  async create(module, { trust, begin = () => {} } = {}) {
    const app = await NestFactory.create<NestExpressApplication>(module, new ExpressAdapter(), nest)
    app.disable('x-powered-by')
    if (trust) app.set('trust proxy', trust === 'everyone' || 1)
    app.use((_request: unknown, response: AnyResponse, next: () => void) => {
      begin(response)
      next()
    })
    return app
  },
  send(response, status, body) {
    if (response.headersSent) return
    response.statusCode = status
    if (body instanceof Readable) body.pipe(response)
    else response.end(body)
  },
}

type FastifyReply = AnyResponse & {
  hijack(): void
  code(status: number): { send(body: string | Readable): void }
}

export const onFastify: Platform = {
  anyPath: '*',
  async create(module, { http2, trust, begin = () => {} } = {}) {
    const adapter = new FastifyAdapter({
      trustProxy: trust === 'everyone' || (trust && '127.0.0.1') || false,
      ...(http2 && { http2 }),
    } as ConstructorParameters<typeof FastifyAdapter>[0])
    const fastify = adapter.getInstance()
    fastify.addHook('onRequest', async (_request, reply) => begin(reply as unknown as AnyResponse))
    // Bodies are read before guards run; this leaves those of any type unread.
    fastify.addContentTypeParser('*', (_request, payload, done) => {
      payload.resume()
      done(null)
    })
    return NestFactory.create<NestFastifyApplication>(module, adapter, nest)
  },
  send(response, status, body) {
    const reply = response as FastifyReply
    if (reply.raw?.headersSent) reply.hijack()
    else reply.code(status).send(body)
  },
}
