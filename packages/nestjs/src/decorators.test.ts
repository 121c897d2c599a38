import { Controller, Get, type Type } from '@nestjs/common'
import { definePlans, Limiter, MemoryStore } from '@sluice/core'
import { rateLimitModule, start } from '../test/start.js'
import { RateLimit, SkipRateLimit } from './index.js'

const minute = { window: '1m' }
const hour = { window: '1h' }
const three = { name: 'burst', limit: 3, ...minute }
const nine = { name: 'daily', limit: 9, ...hour }

/** What the limiters say that apply to a path, as `name=limit`. */
async function applied(controller: Type, path: string, options: object = {}): Promise<string[]> {
  const { get } = await start({ imports: [rateLimitModule(options)], controllers: [controller] })
  const policies = (await get(path)).headers.get('ratelimit-policy') ?? ''
  return policies
    .split(', ')
    .filter(Boolean)
    .map((policy) => policy.replace(/"(.+)";q=(\d+);.*/, '$1=$2'))
}

@RateLimit({ policies: [three, nine] })
@Controller('class')
class OfClass {
  @Get('bare')
  bare() {}

  @RateLimit({ name: 'own', limit: 2, ...minute })
  @Get('more')
  more() {}

  @RateLimit({ name: 'burst', limit: 1, ...minute })
  @Get('replaced')
  replaced() {}

  @RateLimit({
    policies: [
      { ...three, limit: 1 },
      { ...nine, limit: 2 },
    ],
    name: 'both',
  })
  @Get('all-replaced')
  allReplaced() {}

  @SkipRateLimit()
  @RateLimit({ name: 'skipped', limit: 1, ...minute })
  @Get('skip')
  skip() {}

  @SkipRateLimit('burst')
  @Get('skip-one')
  skipOne() {}

  @SkipRateLimit('burst')
  @SkipRateLimit('daily')
  @Get('skip-each')
  skipEach() {}

  @SkipRateLimit('OfClass', 'app')
  @Get('skip-limiter')
  skipLimiter() {}

  @SkipRateLimit('short')
  @Get('skip-of-module')
  skipOfModule() {}
}

@SkipRateLimit()
@RateLimit({ limit: 3, ...minute })
@Controller('skipped')
class Skipped {
  @Get('bare')
  bare() {}

  @RateLimit({ limit: 2, ...minute })
  @Get('own')
  own() {}
}

@Controller('zero')
class Zero {
  @RateLimit({ limit: 0, ...minute })
  @Get('method')
  method() {}

  @Get('free')
  free() {}
}

@RateLimit({ limit: 0, ...minute })
@Controller('zero-class')
class ZeroClass {
  @Get('free')
  free() {}
}

const ofModule = {
  name: 'app',
  policies: [
    { name: 'short', limit: 50, ...minute },
    { name: 'long', limit: 500, ...hour },
  ],
}

describe('limits', () => {
  test.each([
    [
      'of a class hold for its methods, after those of the module',
      OfClass,
      '/class/bare',
      ['short=50', 'long=500', 'burst=3', 'daily=9'],
    ],
    [
      'of class and method add up',
      OfClass,
      '/class/more',
      ['short=50', 'long=500', 'burst=3', 'daily=9', 'own=2'],
    ],
    [
      'of a method replace those of the same name of its class',
      OfClass,
      '/class/replaced',
      ['short=50', 'long=500', 'daily=9', 'burst=1'],
    ],
    [
      'of a method may replace all of its class',
      OfClass,
      '/class/all-replaced',
      ['short=50', 'long=500', 'burst=1', 'daily=2'],
    ],
    ['are all skipped by a bare skip, its own too', OfClass, '/class/skip', []],
    [
      'can be skipped by the name of a policy',
      OfClass,
      '/class/skip-one',
      ['short=50', 'long=500', 'daily=9'],
    ],
    ['can be skipped by several decorators', OfClass, '/class/skip-each', ['short=50', 'long=500']],
    ['can be skipped by the names of limiters', OfClass, '/class/skip-limiter', []],
    [
      'of the module can be skipped one by one',
      OfClass,
      '/class/skip-of-module',
      ['long=500', 'burst=3', 'daily=9'],
    ],
    ['of module and class are skipped by a bare skip of the class', Skipped, '/skipped/bare', []],
    ['of a method hold though its class is skipped', Skipped, '/skipped/own', ['GET /skipped/own=2']],
  ] as const)('%s', async (_, controller, path, expected) => {
    expect(await applied(controller, path, ofModule)).toEqual(expected)
  })

  test('of a class are one count for all of its methods, of which some leave a policy out', async () => {
    const { get } = await start({ imports: [rateLimitModule(ofModule)], controllers: [OfClass] })
    const remaining = async (path: string) => (await get(path)).headers.get('ratelimit')
    await remaining('/class/bare')
    await remaining('/class/skip-one')
    expect(await remaining('/class/bare')).toMatch(/"short";r=47;.*"burst";r=1;.*"daily";r=6;/)
    expect(await remaining('/class/skip-of-module')).toMatch(/"long";r=496;.*"burst";r=0;.*"daily";r=5;/)
  })

  test('of all names are skipped by a bare skip B47', async () => {
    @RateLimit({
      policies: [
        { ...three, limit: 1 },
        { ...nine, limit: 1 },
      ],
    })
    @Controller()
    class Named {
      @Get('limited')
      limited() {}

      @SkipRateLimit()
      @Get('free')
      free() {}
    }
    const imports = [rateLimitModule({ policies: [{ ...three, limit: 2 }] })]
    const { statuses } = await start({ imports, controllers: [Named] })
    expect(await statuses(3, '/limited')).toEqual([200, 429, 429])
    expect(await statuses(5, '/free')).toEqual([200, 200, 200, 200, 200])
  })

  test('of methods are counted apart, whatever they share', async () => {
    const options = { limit: 1, ...minute }
    @Controller()
    class Apart {
      @RateLimit(options)
      @Get('a/:id')
      a() {}

      @RateLimit(options)
      @Get(['b', 'c'])
      b() {}
    }
    const { get, statuses } = await start({ imports: [rateLimitModule()], controllers: [Apart] })
    expect(await statuses(2, '/a/1')).toEqual([200, 429])
    expect(await statuses(1, '/a/2')).toEqual([429])
    expect(await statuses(1, '/b')).toEqual([200])
    expect((await get('/c')).headers.get('ratelimit-policy')).toBe('"GET /b,/c";q=1;w=60')
  })

  test('of one decorator are one charge: all or none', async () => {
    @Controller()
    class Several {
      @RateLimit({ policies: [three, { ...nine, limit: 1 }] })
      @Get()
      get() {}
    }
    const { get, limits } = await start({ imports: [rateLimitModule()], controllers: [Several] })
    expect((await get('/')).status).toBe(200)
    expect((await get('/')).status).toBe(429)
    const { policies } = await limits.limiter('GET /').peek({ key: 'ip:127.0.0.1' })
    expect(policies.map(({ name, remaining }) => [name, remaining])).toEqual([
      ['burst', 2],
      ['daily', 0],
    ])
  })

  test.each([
    ['of a method', '/zero/method', {}],
    ['of a class', '/zero-class/free', {}],
    ['of the module', '/zero/free', { limit: 0, ...minute }],
  ])('%s that are 0 refuse everything B148', async (_, path, options) => {
    const { get } = await start({ imports: [rateLimitModule(options)], controllers: [Zero, ZeroClass] })
    const refused = await get(path)
    expect(refused.status).toBe(429)
    expect(refused.headers.get('retry-after')).toBeNull()
  })

  test('of a group are one count for all that name it, once for class and method', async () => {
    @RateLimit({ group: 'credentials' })
    @Controller()
    class Login {
      @RateLimit({ name: 'daily', limit: 100, ...hour })
      @RateLimit({ group: 'credentials' })
      @Get('login')
      login() {}

      @Get('reset')
      reset() {}
    }
    const groups = { credentials: { policies: [{ ...three, name: 'attempts' }, nine] } }
    const { statuses, limits } = await start({ imports: [rateLimitModule({ groups })], controllers: [Login] })
    expect(await statuses(2, '/login')).toEqual([200, 200])
    expect(await statuses(2, '/reset')).toEqual([200, 429])
    await limits.limiter('credentials').reset('ip:127.0.0.1')
    expect(await statuses(1, '/login')).toEqual([200])
  })

  test('may come from a limiter made elsewhere, several decorators and plans', async () => {
    const limiter = new Limiter({ store: new MemoryStore(), name: 'elsewhere', limit: 7, ...minute })
    const plans = definePlans({ free: { limit: 4, ...minute }, pro: { limit: 40, ...minute } })
    @Controller()
    class Mixed {
      @RateLimit({ name: 'first', limit: 5, ...minute })
      @RateLimit({ limiter })
      @RateLimit({ name: 'tier', plans, plan: 'pro' })
      @Get()
      get() {}
    }
    expect(await applied(Mixed, '/')).toEqual(['first=5', 'elsewhere=7', '40-per-1m=40'])
  })

  test('may follow a plan of the module', async () => {
    const plans = { free: { name: 'tier', limit: 4, ...minute }, none: 'unlimited' }
    @Controller()
    class Planned {
      @SkipRateLimit('default')
      @RateLimit({ name: 'own', plan: 'free' })
      @Get()
      get() {}

      @Get('unlimited')
      unlimited() {}
    }
    expect(await applied(Planned, '/', { plans, plan: 'none' })).toEqual(['tier=4'])
    expect(await applied(Planned, '/unlimited', { plans, plan: 'none' })).toEqual([])
  })

  test('of an inherited method are counted for each class', async () => {
    abstract class Base {
      @RateLimit({ limit: 1, ...minute })
      @Get()
      get() {}
    }
    @Controller('a')
    class A extends Base {}
    @Controller('b')
    class B extends Base {}
    const { statuses } = await start({ imports: [rateLimitModule()], controllers: [A, B] })
    expect(await statuses(2, '/a')).toEqual([200, 429])
    expect(await statuses(2, '/b')).toEqual([200, 429])
  })
})
