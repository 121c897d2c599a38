import { once } from 'node:events'
import net from 'node:net'
import { contractPath, type TestServer } from './site.js'

/** A request as it is written to a socket. */
export interface RawRequest {
  readonly method?: string
  /** What follows the method: a path, or as for a proxy a whole URL. */
  readonly target?: string
  readonly lines?: readonly string[]
  readonly body?: string
}

/** Sends requests in one write over one connection, the last of which closes it; the text of each response. */
export async function pipeline({ port }: TestServer, requests: readonly RawRequest[]): Promise<string[]> {
  const socket = net.connect(port, '127.0.0.1').setEncoding('latin1')
  let received = ''
  socket.on('data', (chunk: string) => {
    received += chunk
  })
  socket.write(requests.map((request, i) => textOf(request, i === requests.length - 1)).join(''))
  await once(socket, 'close')
  return received.split(/(?=HTTP\/1\.1 \d{3} )/)
}

/** The status of each response that is given as text. */
export function statusesOf(responses: readonly string[]): number[] {
  return responses.map((response) => Number(/^HTTP\/1\.1 (\d{3}) /.exec(response)?.[1]))
}

/** A request as text. */
export function textOf(
  { method = 'GET', target = contractPath, lines = [], body = '' }: RawRequest,
  last = false,
): string {
  const length = body === '' ? [] : [`Content-Length: ${Buffer.byteLength(body)}`]
  const close = last ? ['Connection: close'] : []
  const head = [`${method} ${target} HTTP/1.1`, 'Host: 127.0.0.1', ...lines, ...length, ...close]
  return `${head.join('\r\n')}\r\n\r\n${body}`
}
