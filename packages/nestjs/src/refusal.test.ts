import {
  type ArgumentsHost,
  Catch,
  Controller,
  type ExceptionFilter,
  type ExecutionContext,
  ForbiddenException,
  Get,
  Injectable,
  type Type,
  UseFilters,
} from '@nestjs/common'
import { APP_FILTER, APP_GUARD, BaseExceptionFilter } from '@nestjs/core'
import { globalGuard, rateLimitModule, start } from '../test/start.js'
import { type Decision, RateLimit, RateLimitException, RateLimitGuard } from './index.js'

const minute = { window: '1m' }

describe('a refusal', () => {
  const thrown: unknown[] = []
  beforeEach(() => void thrown.splice(0))

  @Catch()
  class Own implements ExceptionFilter {
    catch(exception: RateLimitException, host: ArgumentsHost): void {
      thrown.push(exception)
      host.switchToHttp().getResponse().status(exception.getStatus()).json({ own: exception.getResponse() })
    }
  }

  const problem = { status: 429, title: 'Quota exceeded', 'violated-policies': ['GET /limited'] }

  function limited(...filters: Type<ExceptionFilter>[]): Type {
    @Controller('limited')
    class Limited {
      @RateLimit({ limit: 1, ...minute })
      @Get()
      get() {}
    }
    UseFilters(...filters)(Limited)
    return Limited
  }

  test.each([
    ['of its class', limited(Own), []],
    ['for all, of the application’s own module', limited(), [{ provide: APP_FILTER, useClass: Own }]],
  ])('shows its headers under a filter %s B49', async (where, controller, filters) => {
    const { get } = await start({
      imports: [rateLimitModule()],
      controllers: [controller],
      providers: [globalGuard, ...filters],
    })
    await get('/limited')
    const refused = await get('/limited')
    expect(refused.status).toBe(429)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(refused.headers.get('ratelimit')).toMatch(/^"GET \/limited";r=0;t=\d+$/)
    const body = await refused.json()
    // The filter of the module comes before another of the application.
    expect(body).toMatchObject(where === 'of its class' ? { own: problem } : problem)
  })

  test('is an HttpException that carries decision, headers and body', async () => {
    const { get } = await start({ imports: [rateLimitModule()], controllers: [limited(Own)] })
    await get('/limited')
    const { headers } = await get('/limited')
    expect(thrown).toEqual([expect.any(RateLimitException)])
    const [exception] = thrown as [RateLimitException]
    expect(exception.name).toBe('RateLimitException')
    expect(exception.message).toMatch(/^Quota exceeded. Try again in \d+ seconds.$/)
    expect(exception.getResponse()).toMatchObject(problem)
    expect(exception.decision).toMatchObject({ allowed: false, reason: 'quota', key: 'ip:127.0.0.1' })
    expect(exception.headers).toMatchObject({
      RateLimit: headers.get('ratelimit'),
      'Retry-After': headers.get('retry-after'),
      'Cache-Control': 'no-store',
    })
  })

  test('is sent by the filters of NestJS, where they come first, in their way', async () => {
    @Catch()
    class Base extends BaseExceptionFilter {}
    const { get } = await start({
      imports: [rateLimitModule({ message: 'no' })],
      controllers: [limited(Base)],
    })
    await get('/limited')
    const refused = await get('/limited')
    expect(refused.headers.get('ratelimit')).toMatch(/r=0/)
    expect(await refused.json()).toEqual({ statusCode: 429, message: 'no' })
  })

  test('can be another exception of a guard of one’s own', async () => {
    @Injectable()
    class OwnGuard extends RateLimitGuard {
      protected override async exceptionFor(_: ExecutionContext, decision: Decision): Promise<Error> {
        return new ForbiddenException(decision.reason)
      }
    }
    const { get } = await start({
      imports: [rateLimitModule({ limit: 0, ...minute })],
      controllers: [limited()],
      providers: [{ provide: APP_GUARD, useClass: OwnGuard }],
    })
    expect(await (await get('/limited')).json()).toMatchObject({ statusCode: 403, message: 'cost' })
  })
})
