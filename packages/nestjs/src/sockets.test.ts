import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import {
  type ArgumentsHost,
  Catch,
  type ExecutionContext,
  Module,
  UseFilters,
  UseGuards,
} from '@nestjs/common'
import { WsAdapter } from '@nestjs/platform-ws'
import {
  ConnectedSocket,
  MessageBody,
  SubscribeMessage,
  WebSocketGateway,
  WsException,
} from '@nestjs/websockets'
import { WebSocket } from 'ws'
import { onExpress } from '../test/platforms.js'
import { closeAfterTest, globalGuard, rateLimitModule } from '../test/start.js'
import { type Denial, Limiter, MemoryStore, RateLimit, RateLimitGuard } from './index.js'

const minute = { window: '1m' }
const thrown: unknown[] = []

/** Tells a client of `ws` what was refused. */
@Catch(WsException)
class Tell {
  catch(exception: WsException & Denial, host: ArgumentsHost): void {
    thrown.push(exception)
    const client: WebSocket = host.switchToWs().getClient()
    client.send(JSON.stringify({ event: 'exception', data: exception.getError() }))
  }
}

let handled = 0

@UseFilters(Tell)
@UseGuards(RateLimitGuard)
@WebSocketGateway()
class Chat {
  handleConnection(client: WebSocket & { request?: unknown }, request: unknown): void {
    client.request = request
  }

  @RateLimit({ limit: 5, ...minute })
  @UseGuards(RateLimitGuard)
  @SubscribeMessage('say')
  say(@MessageBody() text: string) {
    handled += 1
    return { event: 'said', data: text }
  }

  @SubscribeMessage('leave')
  leave(@MessageBody() text: string) {
    left.push(text)
    return { event: 'left', data: text }
  }

  @RateLimit({
    limit: 2,
    ...minute,
    key: (context: ExecutionContext) => `room:${context.switchToWs().getData().room}`,
  })
  @SubscribeMessage('join')
  join(@ConnectedSocket() client: WebSocket) {
    return { event: 'joined', data: client.readyState }
  }
}

const left: unknown[] = []
const clients: WebSocket[] = []

/** Closes the connections, and waits until the server knows. */
async function closeAll(): Promise<void> {
  for (const client of clients.splice(0)) {
    client.terminate()
    await once(client, 'close')
  }
}

interface Message {
  readonly event: string
  readonly data: unknown
}

async function serve(
  options: object,
): Promise<() => Promise<(event: string, data: unknown, times?: number) => Promise<Message[]>>> {
  class AppModule {}
  Module({ imports: [rateLimitModule(options)], providers: [Chat, globalGuard] })(AppModule)
  const app = closeAfterTest(await onExpress.create({ module: AppModule }))
  app.useWebSocketAdapter(new WsAdapter(app))
  await app.listen(0, '127.0.0.1')
  const { port } = app.getHttpServer().address() as AddressInfo
  return async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}`)
    clients.push(socket)
    closeAfterTest({ close: async () => socket.terminate() })
    await once(socket, 'open')
    return (event, data, times = 1) =>
      new Promise((resolve) => {
        const received: Message[] = []
        const listen = (text: Buffer): void => {
          received.push(JSON.parse(String(text)))
          if (received.length < times) return
          socket.off('message', listen)
          resolve(received)
        }
        socket.on('message', listen)
        for (let i = 0; i < times; i += 1) socket.send(JSON.stringify({ event, data }))
      })
  }
}

beforeEach(() => {
  handled = 0
  thrown.splice(0)
  left.splice(0)
  clients.splice(0)
})

describe('a gateway', () => {
  test('serves of a flood of messages what the limit admits, and refuses each of the others', async () => {
    const connect = await serve({ limit: 1000, ...minute })
    const send = await connect()
    const answers = await send('say', 'hi', 200)
    expect(answers.filter(({ event }) => event === 'said')).toHaveLength(5)
    expect(answers.filter(({ event }) => event === 'exception')).toHaveLength(195)
    expect(handled).toBe(5)
    // Connections of one client are counted together.
    expect(await (await connect())('say', 'hi', 2)).toMatchObject([
      { event: 'exception' },
      { event: 'exception' },
    ])
  })

  test('charges a message once for all guards, and its limits are those of module and method', async () => {
    const send = await (await serve({ limit: 3, ...minute }))()
    const events = (await send('say', 'hi', 4)).map(({ event }) => event)
    expect(events.sort()).toEqual(['exception', 'said', 'said', 'said'])
  })

  test('refuses with a WsException that carries the decision, and tells the client for how long', async () => {
    const send = await (await serve({ limit: 1, ...minute }))()
    await send('say', 'hi')
    const [refused] = await send('say', 'hi')
    expect(refused).toEqual({
      event: 'exception',
      data: {
        status: 'error',
        message: expect.stringMatching(/^Quota exceeded. Try again in \d+ seconds.$/),
        code: 'SLUICE_DENIED',
        reason: 'quota',
        retryAfterMs: expect.any(Number),
      },
    })
    expect(thrown).toEqual([expect.any(WsException)])
    expect(thrown).toMatchObject([
      { decision: { allowed: false, key: 'ip:127.0.0.1' }, headers: { 'Retry-After': expect.any(String) } },
    ])
  })

  test('does not handle a message whose client left while it waited, and gives its place back', async () => {
    const limiter = new Limiter({
      store: new MemoryStore({ nowUs: () => 1e15 }),
      algorithm: 'leaky-bucket',
      limit: 1,
      window: '1s',
      queue: 1,
    })
    const places = async () => (await limiter.peek({ key: 'ip:127.0.0.1', cost: 0 })).remaining
    const send = await (await serve({ limiter }))()
    await send('leave', 'first')
    void send('leave', 'second')
    while ((await places()) > 0) await new Promise(setImmediate)
    await closeAll()
    while ((await places()) === 0) await new Promise(setImmediate)
    expect(await places()).toBe(1)
    expect(left).toEqual(['first'])
  })

  test('may count by what a message says', async () => {
    const send = await (await serve({}))()
    const events: string[] = []
    for (const room of ['a', 'a', 'a', 'b']) events.push((await send('join', { room }))[0]?.event ?? '')
    expect(events).toEqual(['joined', 'joined', 'exception', 'joined'])
  })

  test('knows the header fields that a connection began with, where the client has its request', async () => {
    const heard: unknown[] = []
    const key = (_: unknown, { header }: { header(name: string): string | undefined }): string => {
      heard.push(header('sec-websocket-version'))
      return 'k'
    }
    const send = await (await serve({ limit: 3, ...minute, key }))()
    await send('say', 'hi')
    expect(heard).toEqual(['13', '13'])
  })
})
