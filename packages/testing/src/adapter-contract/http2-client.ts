import { once } from 'node:events'
import http2 from 'node:http2'
import { type Answer, linesOf, type RequestOptions } from './http-client.js'
import { contractPath, type TestServer } from './site.js'

/** Does something over one connection of HTTP/2, which closes after it. */
export async function withSession<T>(
  { port }: TestServer,
  work: (session: http2.ClientHttp2Session) => Promise<T>,
): Promise<T> {
  const session = http2.connect(`http://127.0.0.1:${port}`)
  // Its streams fail of it too.
  session.on('error', () => {})
  try {
    return await work(session)
  } finally {
    session.close()
    if (!session.destroyed) await once(session, 'close')
  }
}

/** Sends a request as a stream of a connection. */
export async function sendStream(
  session: http2.ClientHttp2Session,
  { method = 'GET', path = contractPath, headers = {}, body: sent }: RequestOptions = {},
): Promise<Answer> {
  const stream = session.request({ ...headers, ':method': method, ':path': path })
  if (sent !== undefined) stream.end(sent)
  let body = ''
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    body += chunk
  })
  const closed = new AbortController()
  stream.on('close', () => closed.abort())
  const [[received, , rawHeaders]] = await Promise.all([
    once(stream, 'response', closed),
    once(stream, 'end', closed),
  ])
  const { ':status': status, ...fields } = received
  const lines = linesOf(rawHeaders).filter((line) => !line.startsWith(':'))
  return { status, statusText: undefined, headers: fields, lines, body }
}

/** Sends a request over a connection of its own. */
export function sendHttp2(server: TestServer, request?: RequestOptions): Promise<Answer> {
  return withSession(server, (session) => sendStream(session, request))
}
