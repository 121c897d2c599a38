import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import {
  type ArgumentsHost,
  Catch,
  Controller,
  type ExecutionContext,
  Module,
  UseFilters,
} from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import {
  BaseRpcExceptionFilter,
  type ClientProxy,
  ClientProxyFactory,
  EventPattern,
  MessagePattern,
  Payload,
  RpcException,
  Transport,
} from '@nestjs/microservices'
import { lastValueFrom } from 'rxjs'
import { closeAfterTest, globalGuard, rateLimitModule } from '../test/start.js'
import { RateLimit, type SluiceEvent } from './index.js'

const minute = { window: '1m' }
const thrown: unknown[] = []

@Catch(RpcException)
class Record extends BaseRpcExceptionFilter {
  override catch(exception: RpcException, host: ArgumentsHost) {
    thrown.push(exception)
    return super.catch(exception, host)
  }
}

let noted = 0

@UseFilters(Record)
@Controller()
class Sums {
  @RateLimit({ limit: 2, ...minute })
  @MessagePattern('sum')
  sum(@Payload() numbers: number[]): number {
    return numbers.reduce((a, b) => a + b, 0)
  }

  @RateLimit({
    limit: 1,
    ...minute,
    key: (context: ExecutionContext) => `tenant:${context.switchToRpc().getData().tenant}`,
  })
  @MessagePattern('of-tenant')
  ofTenant(): string {
    return 'ok'
  }

  @RateLimit({ limit: 1, ...minute })
  @EventPattern('noted')
  noted(_data: unknown): void {
    noted += 1
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

async function serve(options: object = {}): Promise<ClientProxy> {
  class AppModule {}
  Module({ imports: [rateLimitModule(options)], controllers: [Sums], providers: [globalGuard] })(AppModule)
  const tcp = { host: '127.0.0.1', port: await freePort() }
  const app = await NestFactory.createMicroservice(AppModule, {
    transport: Transport.TCP,
    options: tcp,
    logger: false,
  })
  closeAfterTest(app)
  await app.listen()
  const client = ClientProxyFactory.create({ transport: Transport.TCP, options: tcp })
  closeAfterTest({ close: async () => client.close() })
  await client.connect()
  return client
}

/** What the handler of a pattern answers, or the error. */
function ask(client: ClientProxy, pattern: string, data: unknown): Promise<unknown> {
  return lastValueFrom(client.send(pattern, data)).catch((error) => error)
}

beforeEach(() => {
  noted = 0
  thrown.splice(0)
})

describe('a microservice', () => {
  test('refuses with an RpcException that carries the decision, and tells the caller for how long', async () => {
    const client = await serve()
    expect(await ask(client, 'sum', [1, 2])).toBe(3)
    expect(await ask(client, 'sum', [3, 4])).toBe(7)
    expect(await ask(client, 'sum', [5, 6])).toEqual({
      status: 'error',
      message: expect.stringMatching(/^Quota exceeded. Try again in \d+ seconds.$/),
      code: 'SLUICE_DENIED',
      reason: 'quota',
      retryAfterMs: expect.any(Number),
    })
    expect(thrown).toEqual([expect.any(RpcException)])
    expect(thrown).toMatchObject([
      { decision: { allowed: false, key: 'ip:127.0.0.1' }, headers: { 'Retry-After': expect.any(String) } },
    ])
  })

  test('may count by what a message says', async () => {
    const client = await serve()
    const answers: unknown[] = []
    for (const tenant of ['a', 'a', 'b']) answers.push(await ask(client, 'of-tenant', { tenant }))
    expect(answers).toEqual(['ok', expect.objectContaining({ code: 'SLUICE_DENIED' }), 'ok'])
  })

  test('does not handle events above the limit', async () => {
    const client = await serve()
    await lastValueFrom(client.emit('noted', {}), { defaultValue: undefined })
    await lastValueFrom(client.emit('noted', {}), { defaultValue: undefined })
    // The connection keeps their order, so that this one is answered after both.
    await ask(client, 'sum', [1])
    await ask(client, 'sum', [1])
    expect(noted).toBe(1)
  })

  test('holds the calls that a leaky bucket accepts, and refuses those beyond its queue', async () => {
    const delays: number[] = []
    const onEvent = (event: SluiceEvent): void => {
      if (event.type === 'decision') delays.push(event.decision.delayMs)
    }
    const client = await serve({ algorithm: 'leaky-bucket', limit: 100, window: '1s', queue: 1, onEvent })
    const asked = ['a', 'b', 'c'].map((tenant) => ask(client, 'of-tenant', { tenant }))
    const answers = await Promise.all(asked)
    expect(answers.filter((answer) => answer === 'ok')).toHaveLength(2)
    expect(delays).toContain(10)
  })

  test('has the limits of the module too', async () => {
    const client = await serve({ limit: 1, ...minute })
    expect(await ask(client, 'sum', [1])).toBe(1)
    expect(await ask(client, 'of-tenant', { tenant: 'a' })).toMatchObject({ code: 'SLUICE_DENIED' })
  })
})
