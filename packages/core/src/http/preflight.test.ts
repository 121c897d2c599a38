import type { Exchange } from './exchange.js'
import { isPreflight } from './preflight.js'

const asked = { origin: 'https://a.example', 'access-control-request-method': 'POST' }

test.each<[string, boolean, string, Record<string, string>]>([
  ['asks for a method', true, 'OPTIONS', asked],
  ['names the headers to come', true, 'OPTIONS', { ...asked, 'access-control-request-headers': 'x-key' }],
  ['says that it has no body', true, 'OPTIONS', { ...asked, 'content-length': '0' }],
  ['asks for nothing', false, 'OPTIONS', {}],
  ['is of another method', false, 'POST', asked],
  ['brings a token', false, 'OPTIONS', { ...asked, authorization: 'Bearer K' }],
  ['brings a cookie', false, 'OPTIONS', { ...asked, cookie: 'session=1' }],
  ['brings a body of a type', false, 'OPTIONS', { ...asked, 'content-type': 'application/json' }],
  ['brings a body of a length', false, 'OPTIONS', { ...asked, 'content-length': '9' }],
  ['brings a body of no known length', false, 'OPTIONS', { ...asked, 'transfer-encoding': 'chunked' }],
  ['is to be another method', false, 'OPTIONS', { ...asked, 'x-http-method-override': 'POST' }],
  ['is to be another method, in short', false, 'OPTIONS', { ...asked, 'x-http-method': 'POST' }],
  ['is to be another method, in other words', false, 'OPTIONS', { ...asked, 'x-method-override': 'POST' }],
])('a request that %s: a preflight is %p', (_, expected, method, headers) => {
  const exchange = { method, header: (name: string) => headers[name] }
  expect(isPreflight(exchange as Exchange)).toBe(expected)
})
