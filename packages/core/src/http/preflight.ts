import type { Exchange } from './exchange.js'

/**
 * What no browser sends with a preflight: credentials, a body, another method. A handler that takes every method, or
 * follows an override, would be reached uncounted with it.
 */
const neverSent = [
  'authorization',
  'cookie',
  'content-type',
  'transfer-encoding',
  'x-http-method-override',
  'x-http-method',
  'x-method-override',
]

/** Whether a request only asks, for CORS, what another one may do. */
export function isPreflight(exchange: Exchange): boolean {
  return (
    exchange.method === 'OPTIONS' &&
    exchange.header('access-control-request-method') !== undefined &&
    Number(exchange.header('content-length') ?? 0) === 0 &&
    neverSent.every((name) => exchange.header(name) === undefined)
  )
}
