import type http from 'node:http'
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'

/** What the handlers of a bridge get beside the request, as `@hono/node-server` gives it. */
export interface NodeBindings {
  readonly incoming: http.IncomingMessage
  readonly outgoing: http.ServerResponse
}

/** Serves a Fetch handler on the server of Node.js. */
export function nodeListener(
  handler: (request: Request, bindings: NodeBindings) => Promise<Response>,
): http.RequestListener {
  return async (incoming, outgoing) => {
    const leaving = new AbortController()
    const leave = (): void => {
      if (!outgoing.writableFinished) leaving.abort()
    }
    outgoing.once('close', leave)
    // A response that is queued behind another on its connection is not told when that closes.
    incoming.socket.setMaxListeners(0).once('close', leave)
    outgoing.once('finish', () => incoming.socket.off('close', leave))
    // Something else has answered: nobody waits for this response.
    if (outgoing.headersSent) leaving.abort()
    const { method, url = '', rawHeaders } = incoming
    const headers = new Headers()
    for (let i = 0; i < rawHeaders.length; i += 2) headers.append(`${rawHeaders[i]}`, `${rawHeaders[i + 1]}`)
    const request = new Request(new URL(url, 'http://127.0.0.1').href, {
      ...(method && { method }),
      headers,
      signal: leaving.signal,
    })
    const response = await handler(request, { incoming, outgoing })
    if (outgoing.headersSent || outgoing.destroyed) return
    outgoing.writeHead(response.status, [...response.headers].flat())
    if (!response.body) return void outgoing.end()
    const body = Readable.fromWeb(response.body as ReadableStream)
    body.on('error', () => outgoing.destroy())
    outgoing.once('close', () => body.destroy())
    body.pipe(outgoing)
  }
}
