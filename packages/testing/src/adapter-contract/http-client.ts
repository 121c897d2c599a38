import http from 'node:http'
import { contractPath, type TestServer } from './site.js'

/** A request to a site. */
export interface RequestOptions {
  readonly method?: string
  readonly path?: string
  readonly headers?: http.OutgoingHttpHeaders
  readonly body?: string
  /** What keeps connections open. Default: one connection for each request. */
  readonly agent?: http.Agent
}

/** What came back. */
export interface Answer {
  /** As in `HTTP/1.1 429 Too Many Requests`. */
  readonly status: number | undefined
  readonly statusText: string | undefined
  readonly headers: http.IncomingHttpHeaders
  /** The lines of the header as they were sent, names in lower case. */
  readonly lines: readonly string[]
  readonly body: string
  /** Whether it came over a connection that had been used before. */
  readonly reused?: boolean
}

export function send({ port }: TestServer, request: RequestOptions = {}): Promise<Answer> {
  const { method = 'GET', path = contractPath, headers = {}, body, agent = false } = request
  return new Promise((resolve, reject) => {
    const sent = http.request({ host: '127.0.0.1', port, path, method, headers, agent }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        text += chunk
      })
      response.on('error', reject)
      response.on('end', () => {
        const { statusCode: status, statusMessage: statusText, headers, rawHeaders } = response
        resolve({
          status,
          statusText,
          headers,
          lines: linesOf(rawHeaders),
          body: text,
          reused: sent.reusedSocket,
        })
      })
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

/** The statuses of requests that are sent one after the other. */
export async function sendTimes(server: TestServer, times: number): Promise<unknown[]> {
  const statuses: unknown[] = []
  for (let i = 0; i < times; i++) statuses.push((await send(server)).status)
  return statuses
}

/** The headers that a limiter may write, without those that describe a body. */
export function limiterHeaders({ headers }: Pick<Answer, 'headers'>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => isLimiters(name)))
}

/** The lines that a limiter may write, sorted, without those that describe a body. */
export function limiterLines({ lines }: Answer): string[] {
  return lines.filter((line) => isLimiters(line.slice(0, line.indexOf(':')))).sort()
}

function isLimiters(name: string): boolean {
  return /^(x-)?ratelimit|^retry-after$|^cache-control$/.test(name)
}

/** `name: value` of a list in which names and values take turns. */
export function linesOf(rawHeaders: readonly string[]): string[] {
  return rawHeaders.flatMap((name, i) => (i % 2 === 0 ? [`${name.toLowerCase()}: ${rawHeaders[i + 1]}`] : []))
}
