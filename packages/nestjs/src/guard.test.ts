import {
  Controller,
  type ExecutionContext,
  ForbiddenException,
  Get,
  Inject,
  Injectable,
  Module,
  Scope,
  UseGuards,
} from '@nestjs/common'
import { APP_GUARD } from '@nestjs/core'
import { MemoryStore, type SluiceEvent } from '@sluice/core'
import { globalGuard, rateLimitModule, start } from '../test/start.js'
import {
  byUser,
  type Decision,
  definePlans,
  Limiter,
  RATE_LIMIT_KEY,
  RATE_LIMIT_PLAN,
  RATE_LIMIT_REPLY,
  RateLimit,
  RateLimitGuard,
  RateLimitModule,
  requestOf,
} from './index.js'

const minute = { window: '1m' }
const two = { limit: 2, ...minute }

@RateLimit(two)
@Controller('items')
class Items {
  @RateLimit({ limit: 3, ...minute })
  @Get()
  get() {}
}

interface UserRequest {
  headers: Record<string, string | undefined>
  user?: string
}

/** Knows a user by a header. */
@Injectable()
class Authentication {
  canActivate(context: ExecutionContext): boolean {
    const request = requestOf<UserRequest>(context)
    if (request) request.user = request.headers['x-user']
    return true
  }
}
const authentication = { provide: APP_GUARD, useClass: Authentication }
const userOf = (context: ExecutionContext): string | undefined => requestOf<UserRequest>(context)?.user
const as = (user: string): Record<string, string> => ({ 'x-user': user })

describe('the guard', () => {
  test.each([
    ['of the application, of a class and of a method together', [globalGuard], true, true],
    ['of the application alone', [globalGuard], false, false],
    ['of a class alone', [], true, false],
    ['of a method alone', [], false, true],
    ['of the application twice', [globalGuard, globalGuard], false, false],
    ['of a class and of a method', [], true, true],
  ])('%s charges once', async (_, providers, onClass, onMethod) => {
    @Controller()
    class Guarded {
      @RateLimit({ limit: 3, ...minute })
      @Get()
      get() {}
    }
    if (onClass) UseGuards(RateLimitGuard)(Guarded)
    const descriptor = Object.getOwnPropertyDescriptor(Guarded.prototype, 'get') as PropertyDescriptor
    if (onMethod) UseGuards(RateLimitGuard)(Guarded.prototype, 'get', descriptor)
    const { get } = await start({ imports: [rateLimitModule(two)], controllers: [Guarded], providers })
    expect((await get('/')).headers.get('ratelimit')).toMatch(/"2-per-1m";r=1;.*"GET \/";r=2;/)
  })

  test('counts in Redis or memory what the options of other providers say', async () => {
    const store = new MemoryStore()
    class Settings {
      readonly limit = 2
    }
    @Module({ providers: [Settings], exports: [Settings] })
    class SettingsModule {}
    const module = RateLimitModule.forRootAsync({
      imports: [SettingsModule],
      inject: [Settings],
      useFactory: async ({ limit }: Settings) => ({ store, limit, ...minute }),
    })
    const { statuses, close } = await start({ imports: [module], controllers: [Items] })
    expect(await statuses(3, '/items')).toEqual([200, 200, 429])
    await close()
    const again = await start({ imports: [module], controllers: [Items] })
    expect(await again.statuses(1, '/items')).toEqual([429])
  })

  test('counts an application whose controllers are made for each request', async () => {
    @Controller({ path: 'scoped', scope: Scope.REQUEST })
    class Scoped {
      @RateLimit(two)
      @Get()
      get() {}
    }
    const { statuses } = await start({ imports: [rateLimitModule()], controllers: [Scoped] })
    expect(await statuses(3, '/scoped')).toEqual([200, 200, 429])
  })

  test('after another may count who that one found', async () => {
    const options = { ...two, key: byUser(userOf) }
    const { get } = await start({
      imports: [rateLimitModule(options)],
      controllers: [Items],
      providers: [authentication, globalGuard],
    })
    const statuses: number[] = []
    for (const user of ['ada', 'ada', 'ada', 'bob']) statuses.push((await get('/items', as(user))).status)
    expect(statuses).toEqual([200, 200, 429, 200])
  })

  test('lets nothing without limits wait or tell', async () => {
    @Controller()
    class Free {
      @Get()
      get() {}
    }
    const heard: SluiceEvent[] = []
    const options = { onEvent: (event: SluiceEvent) => heard.push(event), groups: { unused: two } }
    const { get } = await start({ imports: [rateLimitModule(options)], controllers: [Free] })
    expect((await get('/')).headers.get('ratelimit')).toBeNull()
    expect(heard).toEqual([])
  })
})

describe('providers', () => {
  test('may find key and plan of a request', async () => {
    class Accounts {
      readonly plans = new Map([['ada', 'pro']])
    }
    @Module({ providers: [Accounts], exports: [Accounts] })
    class AccountsModule {}
    const plans = definePlans({ free: { limit: 1, ...minute }, pro: { limit: 2, ...minute } })
    const module = RateLimitModule.forRoot(
      { plans, defaultPlan: 'free' },
      {
        imports: [AccountsModule],
        providers: [
          { provide: RATE_LIMIT_KEY, useValue: byUser(userOf) },
          {
            provide: RATE_LIMIT_PLAN,
            inject: [Accounts],
            useFactory: (accounts: Accounts) => (context: ExecutionContext) =>
              accounts.plans.get(userOf(context) ?? ''),
          },
        ],
      },
    )
    const { get } = await start({
      imports: [module],
      controllers: [Items],
      providers: [authentication, globalGuard],
    })
    const statuses: number[] = []
    for (const user of ['ada', 'ada', 'bob', 'bob']) statuses.push((await get('/items', as(user))).status)
    expect(statuses).toEqual([200, 200, 200, 429])
  })

  test('may replace the refusal by an exception', async () => {
    const reply = (_: ExecutionContext, { retryAfterMs }: Decision): never => {
      throw new ForbiddenException(`wait ${retryAfterMs > 0}`)
    }
    const module = RateLimitModule.forRoot(
      { limit: 1, window: '1d' },
      { providers: [{ provide: RATE_LIMIT_REPLY, useValue: reply }] },
    )
    const { get } = await start({ imports: [module], controllers: [Items] })
    await get('/items')
    const refused = await get('/items')
    expect(refused.status).toBe(403)
    expect(refused.headers.get('retry-after')).not.toBeNull()
    expect(await refused.json()).toMatchObject({ message: 'wait true' })
  })

  test('may have the limiter, and those of decorators by their names', async () => {
    @Injectable()
    class Support {
      constructor(@Inject(Limiter) readonly limiter: Limiter) {}
    }
    let support: Support | undefined
    const made = { provide: 'made', inject: [Support], useFactory: (found: Support) => (support = found) }
    const { statuses, limits } = await start({
      imports: [rateLimitModule(two)],
      controllers: [Items],
      providers: [globalGuard, Support, made],
    })
    expect(await statuses(3, '/items')).toEqual([200, 200, 429])
    expect(support?.limiter).toBe(limits.limiter('default'))
    await support?.limiter.reset('ip:127.0.0.1')
    await limits.limiter('Items').reset('ip:127.0.0.1')
    await limits.limiter('GET /items').reset('ip:127.0.0.1')
    expect(await statuses(1, '/items')).toEqual([200])
    expect(() => limits.limiter('items')).toThrow(/one of default, Items, GET \/items.*SLUICE_BAD_OPTION/)
  })

  test('cannot have a limiter of a module that has none', async () => {
    const made = { provide: 'made', inject: [Limiter], useFactory: () => 'made' }
    const starting = start({ imports: [rateLimitModule()], providers: [made] })
    await expect(starting).rejects.toMatchObject({ code: 'SLUICE_BAD_OPTION' })
  })
})
