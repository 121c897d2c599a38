import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Redis } from 'ioredis'

/** One request of a client. */
export interface BridgeRequest {
  readonly path: string
  readonly commands: readonly (readonly (string | number)[])[]
}

/** Answers a request in place of the bridge, or lets it. */
type Fault = (request: BridgeRequest, response: ServerResponse) => boolean

/** A service that speaks the REST protocol of Upstash, in front of a real Redis. */
export interface RestBridge {
  readonly url: string
  readonly token: string
  /** What was asked, in order. */
  readonly requests: BridgeRequest[]
  /** Called before each request is answered; true if it has done that, or means to. */
  fault: Fault | undefined
  /** Changes a command on its way to Redis. */
  rewrite: ((command: readonly (string | number)[]) => readonly (string | number)[]) | undefined
  close(): Promise<void>
}

const status = { ok: 200, badRequest: 400, unauthorized: 401 } as const

/** Starts a bridge on a free port of 127.0.0.1. */
export async function startBridge(client: Redis): Promise<RestBridge> {
  const server = createServer((request, response) => {
    answer(request, response).catch((error) => response.destroy(error))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const bridge: RestBridge = {
    url: `http://127.0.0.1:${port}`,
    token: 'a-token',
    requests: [],
    fault: undefined,
    rewrite: undefined,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const reply = (code: number, body: unknown): void => {
      response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    }
    const body = JSON.parse(await text(request))
    if (request.headers.authorization !== `Bearer ${bridge.token}`) {
      return reply(status.unauthorized, { error: 'WRONGPASS invalid or missing auth token' })
    }
    const several = request.url === '/pipeline'
    const asked: BridgeRequest = { path: request.url ?? '', commands: several ? body : [body] }
    bridge.requests.push(asked)
    if (bridge.fault?.(asked, response)) return
    const encode = request.headers['upstash-encoding'] === 'base64'
    const answers = await Promise.all(asked.commands.map((command) => run(command, encode)))
    if (several) reply(status.ok, answers)
    else reply('error' in (answers[0] as object) ? status.badRequest : status.ok, answers[0])
  }

  async function run(command: readonly (string | number)[], encode: boolean): Promise<object> {
    const [name, ...args] = bridge.rewrite?.(command) ?? command
    try {
      return { result: shown(await client.callBuffer(String(name), ...args), encode) }
    } catch (error) {
      return { error: (error as Error).message }
    }
  }

  return bridge
}

function shown(reply: unknown, encode: boolean): unknown {
  if (Array.isArray(reply)) return reply.map((part) => shown(part, encode))
  return Buffer.isBuffer(reply) ? reply.toString(encode ? 'base64' : 'utf8') : reply
}
