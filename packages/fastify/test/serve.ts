import http from 'node:http'
import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'

/** What a client sees of an answer. */
export interface Answer {
  readonly status: number | undefined
  readonly headers: http.IncomingHttpHeaders
  readonly body: string
}

/** Sends a request on a connection of its own: `send('/items')`, `send('POST /items')`. */
export type Send = (request: string, headers?: http.OutgoingHttpHeaders, body?: string) => Promise<Answer>

/** Starts the application on 127.0.0.1 and a free port. */
export async function serve(app: FastifyInstance): Promise<Send> {
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  return (request, headers, body) => {
    const [path = '', method = 'GET'] = request.split(' ').reverse()
    return new Promise((resolve, reject) => {
      http
        .request({ host: '127.0.0.1', port, path, method, headers, agent: false }, (response) => {
          let text = ''
          response.setEncoding('utf8')
          response.on('data', (chunk) => {
            text += chunk
          })
          response.on('end', () =>
            resolve({ status: response.statusCode, headers: response.headers, body: text }),
          )
          response.on('error', reject)
        })
        .on('error', reject)
        .end(body)
    })
  }
}

/** The statuses of the answers to these requests, sent one after the other. */
export async function statuses(send: Send, ...requests: string[]): Promise<(number | undefined)[]> {
  const answered: (number | undefined)[] = []
  for (const request of requests) answered.push((await send(request)).status)
  return answered
}

/** What `RateLimit-Remaining` says after each of these requests. */
export async function remaining(send: Send, ...requests: string[]): Promise<(string | undefined)[]> {
  const told: (string | undefined)[] = []
  for (const request of requests) {
    const { headers } = await send(request)
    told.push(headers['ratelimit-remaining'] as string | undefined)
  }
  return told
}
