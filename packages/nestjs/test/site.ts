import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import {
  All,
  type ArgumentsHost,
  Catch,
  Controller,
  Get,
  HttpException,
  NotFoundException,
  Req,
  Res,
  type Type,
} from '@nestjs/common'
import { APP_FILTER, APP_GUARD, BaseExceptionFilter, HttpAdapterHost } from '@nestjs/core'
import { HttpLimiter } from '@sluice/core'
import type { MakeServer, Site } from '@sluice/testing'
import {
  type Decision,
  RateLimit,
  RateLimitGuard,
  RateLimitModule,
  type RateLimitOptions,
} from '../src/index.js'
import type { AnyResponse, Platform } from './platforms.js'

/** Makes sites with NestJS: limits of the application are the module's, those of the group are a class's. */
export function makeServer(platform: Platform): MakeServer {
  return async (build, protocol) => {
    const handled: (Decision | undefined)[] = []
    const errors: unknown[] = []
    const site = build({
      rateLimit: (options) => options,
      onLimited:
        (reply): RateLimitOptions['onLimited'] =>
        async (context, decision) => {
          const custom = await reply(decision)
          if (custom) platform.send(context.switchToHttp().getResponse(), custom.status, custom.body)
        },
    })
    const app = await platform.create(
      {
        module: class SiteModule {},
        imports: [RateLimitModule.forRoot((site.app?.[0] ?? {}) as RateLimitOptions)],
        controllers: [itemsOf(site, handled, platform), unknownOf(platform)],
        providers: [
          { provide: APP_GUARD, useClass: RateLimitGuard },
          {
            provide: APP_FILTER,
            inject: [HttpAdapterHost],
            useFactory: (host: HttpAdapterHost) => new Errors(host, errors, platform),
          },
        ],
      },
      {
        http2: protocol === 'http2',
        trust: site.trust,
        begin(response) {
          for (const [name, value] of Object.entries(site.responseHeaders ?? {})) response.header(name, value)
          site.before?.(response.raw ?? response)
        },
      },
    )
    await app.listen(0, '127.0.0.1')
    const { port } = app.getHttpServer().address() as AddressInfo
    return { port, handled, errors, close: () => app.close() }
  }
}

/** The controller of a site. */
function itemsOf(site: Site, handled: (Decision | undefined)[], platform: Platform): Type {
  @Controller('api')
  class Items {
    @Get('item')
    async item(@Req() request: { rateLimit?: Decision }, @Res() response: AnyResponse): Promise<void> {
      handled.push(request.rateLimit)
      const answer = await site.handler?.()
      if (answer instanceof Readable) platform.send(response, 200, answer)
      else platform.send(response, Number(answer ?? 200), 'ok')
    }
  }
  // One that stands in several places of a site is one limit, which is stated once.
  const seen = new Set(site.app)
  const fresh = (limits: readonly unknown[] = []) =>
    limits.filter((limit) => seen.size < seen.add(limit).size)
  for (const limit of fresh(site.group)) RateLimit(withLimiter(limit as RateLimitOptions))(Items)
  const descriptor = Object.getOwnPropertyDescriptor(Items.prototype, 'item') as PropertyDescriptor
  for (const limit of fresh(site.route)) {
    RateLimit(withLimiter(limit as RateLimitOptions))(Items.prototype, 'item', descriptor)
  }
  return Items
}

const httpOptions = [
  'key',
  'cost',
  'plan',
  'defaultPlan',
  'skip',
  'preflight',
  'headers',
  'onLimited',
] as const

/** Gives a limit without a name the limiter that other adapters would, where NestJS names it after its place. */
function withLimiter(options: RateLimitOptions): RateLimitOptions {
  if (options.limiter || options.name) return options
  const given = httpOptions.filter((name) => options[name] !== undefined)
  return {
    ...Object.fromEntries(given.map((name) => [name, options[name]])),
    limiter: new HttpLimiter(options).limiter,
  }
}

/** Guards run for routes alone, so this is one for what no other takes. */
function unknownOf({ anyPath }: Platform): Type {
  @Controller()
  class Unknown {
    @All(anyPath)
    notFound(): never {
      throw new NotFoundException()
    }
  }
  return Unknown
}

@Catch()
class Errors extends BaseExceptionFilter {
  constructor(
    host: HttpAdapterHost,
    readonly errors: unknown[],
    readonly platform: Platform,
  ) {
    super(host.httpAdapter)
  }

  override catch(exception: unknown, host: ArgumentsHost): void {
    if (exception instanceof HttpException) {
      super.catch(exception, host)
    } else {
      this.errors.push(exception)
      this.platform.send(host.switchToHttp().getResponse(), 500, 'failed')
    }
  }
}
