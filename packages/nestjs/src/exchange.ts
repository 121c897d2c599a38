import type { IncomingMessage } from 'node:http'
import type { ExecutionContext } from '@nestjs/common'
import { type Decision, type Exchange, joinHeader, onResponseEnd } from '@sluice/core'

/** A call, as the core sees it, with what a guard needs besides. */
export interface ContextExchange extends Exchange<ExecutionContext> {
  /** The headers that limiters set; only over HTTP they are on the response too. */
  readonly headers: Readonly<Record<string, string>>
  /** Shows the decision to what comes after. */
  decided(decision: Decision): void
}

/** A call of any transport. */
export function exchangeOf(context: ExecutionContext): ContextExchange {
  return context.getType() === 'http' ? new HttpExchange(context) : new OtherExchange(context)
}

/**
 * The HTTP request behind a call: its own; of GraphQL the `req` or `request` of the context; of a WebSocket the
 * `request` of the client, where it has one. Undefined for other transports.
 */
export function requestOf<Req = unknown>(context: ExecutionContext): Req | undefined {
  const type: string = context.getType()
  if (type === 'http') return context.switchToHttp().getRequest()
  if (type === 'ws') return context.switchToWs().getClient()?.request
  if (type !== 'graphql') return undefined
  const shared = context.getArgByIndex(2)
  const request = shared?.req ?? shared?.request
  // Of a subscription, `req` is what graphql-ws knows of the connection.
  return (request ?? shared)?.extra?.request ?? request
}

/** A request of Express or Fastify, or the one that a socket began with. */
interface AnyRequest extends Partial<Pick<IncomingMessage, 'method' | 'headers' | 'socket'>> {
  readonly raw?: IncomingMessage
  readonly ip?: string
  readonly ips?: unknown
  readonly app?: { get?(setting: string): unknown }
  rateLimit?: Decision
}

/** A response of Express, or a reply of Fastify, which has one of Node.js. */
export interface AnyResponse {
  readonly raw?: AnyResponse
  readonly headersSent?: boolean
  readonly sent?: boolean
}

/** Whether nothing can be answered any more, by whatever way the headers went out. */
export function headersSent({ raw, sent, headersSent }: AnyResponse): boolean {
  return raw ? sent === true || raw.headersSent === true : headersSent === true
}

abstract class CallExchange implements ContextExchange {
  readonly headers: Record<string, string> = {}
  abstract readonly response: unknown
  abstract readonly identity: object
  abstract readonly headersSent: boolean

  constructor(
    readonly request: ExecutionContext,
    protected readonly http: AnyRequest | undefined,
  ) {}

  get method(): string {
    return this.http?.method ?? ''
  }

  get ip(): string | undefined {
    return this.http?.ip ?? this.raw?.socket?.remoteAddress
  }

  get trustsEveryProxy(): boolean {
    return this.http?.raw ? fastifyTrustsEveryProxy(this.http) : this.#trustProxy === true
  }

  get trustsNoProxy(): boolean {
    return this.http?.raw ? this.http.ips === undefined : !this.#trustProxy
  }

  get gone(): boolean {
    return this.raw?.socket?.destroyed === true
  }

  header(name: string): string | undefined {
    return joinHeader(this.raw?.headers?.[name])
  }

  abstract responseHeader(name: string): string | undefined
  abstract setResponseHeader(name: string, value: string): void
  abstract onEnd(listener: (finished: boolean) => void): void
  abstract decided(decision: Decision): void

  protected get raw(): Partial<IncomingMessage> | undefined {
    return this.http?.raw ?? this.http
  }

  /** The setting of Express. */
  get #trustProxy(): unknown {
    return this.http?.app?.get?.('trust proxy')
  }
}

class HttpExchange extends CallExchange {
  readonly response

  constructor(context: ExecutionContext) {
    super(context, requestOf(context))
    this.response = context.switchToHttp().getResponse()
  }

  get identity(): object {
    return this.raw as object
  }

  get headersSent(): boolean {
    return headersSent(this.response)
  }

  responseHeader(name: string): string | undefined {
    return joinHeader(this.response.getHeader(name))
  }

  setResponseHeader(name: string, value: string): void {
    this.headers[name] = value
    // Express and Fastify both have it.
    this.response.header(name, value)
  }

  onEnd(listener: (finished: boolean) => void): void {
    onResponseEnd(this.response.raw ?? this.response, listener)
  }

  decided(decision: Decision): void {
    if (this.http) this.http.rateLimit = decision
  }
}

/** A client of a WebSocket, of `ws` or of Socket.IO. */
interface AnySocket {
  readonly _socket?: { readonly remoteAddress?: string }
  readonly readyState?: number
  readonly disconnected?: boolean
}

/** A call without a response of its own: each is counted by itself, and only a refusal tells of the limits. */
class OtherExchange extends CallExchange {
  readonly response = undefined
  readonly headersSent = false
  /** One for each call, which all guards on it share. */
  readonly identity: object
  readonly #socket: AnySocket | undefined

  constructor(context: ExecutionContext) {
    super(context, requestOf(context))
    this.identity = context
    this.#socket = context.getType() === 'ws' ? context.switchToWs().getClient() : undefined
  }

  /** A preflight has no fields. */
  override get method(): string {
    return ''
  }

  override get ip(): string | undefined {
    return super.ip ?? this.#socket?._socket?.remoteAddress ?? tcpPeerOf(this.request)
  }

  override get gone(): boolean {
    return super.gone || this.#socket?.disconnected === true || Number(this.#socket?.readyState) > 1
  }

  responseHeader(name: string): string | undefined {
    return this.headers[name]
  }

  setResponseHeader(name: string, value: string): void {
    this.headers[name] = value
  }

  onEnd(): void {}

  decided(): void {}
}

/** The address of who calls a microservice over TCP. */
function tcpPeerOf(context: ExecutionContext): string | undefined {
  const call = context.getType() === 'rpc' ? context.switchToRpc().getContext() : undefined
  return call?.getSocketRef?.()?.netSocket?.remoteAddress
}

/** Fastify does not show its option `trustProxy`, so this asks whose address it would take after many proxies. */
function fastifyTrustsEveryProxy(request: AnyRequest): boolean {
  const hops = Array.from({ length: 100 }, (_, i) => `192.0.2.${i}`)
  const raw = { headers: { 'x-forwarded-for': hops.join(', ') }, socket: { remoteAddress: '192.0.2.100' } }
  return Object.create(request, { raw: { value: raw } }).ip === hops[0]
}
