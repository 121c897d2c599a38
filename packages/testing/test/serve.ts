import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'

/** A request to send. Method POST by default; a body is sent as JSON. */
export interface Sent {
  readonly method?: string
  readonly headers?: http.OutgoingHttpHeaders
  readonly body?: object
}

export interface Answer {
  readonly status: number | undefined
  readonly headers: http.IncomingHttpHeaders
  readonly body: string
}

/** Sends a request to the path, letter for letter. */
export type Send = (path: string, sent?: Sent) => Promise<Answer>

const servers: http.Server[] = []

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
})

/** Serves on a free port until the end of the test; resolves to the URL. */
export async function listen(listener: http.RequestListener): Promise<string> {
  const server = http.createServer(listener).listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** The same, for requests to paths that other clients would tidy up. */
export async function serve(listener: http.RequestListener): Promise<Send> {
  const { port } = new URL(await listen(listener))
  return async (path, { method = 'POST', headers = {}, body } = {}) => {
    const type = body && { 'content-type': 'application/json' }
    const options = { host: '127.0.0.1', port, path, method, headers: { ...type, ...headers } }
    const request = http.request(options).end(body && JSON.stringify(body))
    const [response] = (await once(request, 'response')) as [http.IncomingMessage]
    let text = ''
    for await (const chunk of response.setEncoding('utf8')) text += chunk
    return { status: response.statusCode, headers: response.headers, body: text }
  }
}
