import { type Exchange, joinHeader, onResponseEnd } from '@sluice/core'
import type { FastifyReply, FastifyRequest } from 'fastify'

/**
 * A request and its reply, as the core sees them. A class, since an object with getters of its own costs more than the
 * decision.
 */
export class FastifyExchange implements Exchange<FastifyRequest, FastifyReply> {
  constructor(
    readonly request: FastifyRequest,
    readonly response: FastifyReply,
  ) {}

  get identity(): FastifyRequest['raw'] {
    return this.request.raw
  }

  get method(): string {
    return this.request.method
  }

  get ip(): string {
    return this.request.ip
  }

  get trustsEveryProxy(): boolean {
    return trustsEveryProxy(this.request)
  }

  get trustsNoProxy(): boolean {
    return this.request.ips === undefined
  }

  get gone(): boolean {
    return this.request.raw.socket?.destroyed === true
  }

  get headersSent(): boolean {
    return headersSent(this.response)
  }

  header(name: string): string | undefined {
    return joinHeader(this.request.headers[name])
  }

  responseHeader(name: string): string | undefined {
    return joinHeader(this.response.getHeader(name))
  }

  setResponseHeader(name: string, value: string): void {
    this.response.header(name, value)
  }

  onEnd(listener: (finished: boolean) => void): void {
    onResponseEnd(this.response.raw, listener)
  }
}

/** Whether nothing can be answered any more, by whatever way the headers went out. */
export function headersSent(reply: FastifyReply): boolean {
  return reply.sent || reply.raw.headersSent
}

/** Fastify does not show its option `trustProxy`, so this asks whose address it would take after many proxies. */
function trustsEveryProxy(request: FastifyRequest): boolean {
  const hops = Array.from({ length: 100 }, (_, i) => `192.0.2.${i}`)
  const raw = { headers: { 'x-forwarded-for': hops.join(', ') }, socket: { remoteAddress: '192.0.2.100' } }
  return Object.create(request, { raw: { value: raw } }).ip === hops[0]
}
