import { type Exchange, joinHeader, onResponseEnd } from '@sluice/core'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** A request and its reply, as the core sees them. */
export function exchangeOf(
  request: FastifyRequest,
  reply: FastifyReply,
): Exchange<FastifyRequest, FastifyReply> {
  return {
    request,
    response: reply,
    identity: request.raw,
    method: request.method,
    get ip() {
      return request.ip
    },
    get trustsEveryProxy() {
      return trustsEveryProxy(request)
    },
    get trustsNoProxy() {
      return request.ips === undefined
    },
    get gone() {
      return request.raw.socket?.destroyed === true
    },
    get headersSent() {
      return headersSent(reply)
    },
    header: (name) => joinHeader(request.headers[name]),
    responseHeader: (name) => joinHeader(reply.getHeader(name)),
    setResponseHeader: (name, value) => void reply.header(name, value),
    onEnd: (listener) => onResponseEnd(reply.raw, listener),
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
