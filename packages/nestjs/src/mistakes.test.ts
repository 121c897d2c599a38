import { Controller, Get, type Type } from '@nestjs/common'
import { SluiceError } from '@sluice/core'
import { rateLimitModule, start } from '../test/start.js'
import { RateLimit, RateLimitModule, type RateLimitModuleOptions, SkipRateLimit } from './index.js'

const minute = { window: '1m' }

describe('a mistake is an error when the application starts', () => {
  /** A controller whose method is decorated so. */
  function decorated(...decorators: MethodDecorator[]): Type {
    @Controller('path')
    class Mistaken {
      @Get()
      method() {}
    }
    const descriptor = Object.getOwnPropertyDescriptor(Mistaken.prototype, 'method') as PropertyDescriptor
    for (const decorate of decorators) decorate(Mistaken.prototype, 'method', descriptor)
    return Mistaken
  }

  test.each([
    [
      'an unknown option',
      () => RateLimit({ limt: 5 } as never),
      'SLUICE_UNKNOWN_OPTION',
      /^Mistaken.method: .*`limt`/,
    ],
    ['no limits at all', () => RateLimit({}), 'SLUICE_BAD_OPTION', /^Mistaken.method: /],
    ['an unknown group', () => RateLimit({ group: 'login' }), 'SLUICE_BAD_OPTION', /`group` is "login".*api/],
    [
      'a group beside limits',
      () => RateLimit({ group: 'api', limit: 1 } as never),
      'SLUICE_BAD_OPTION',
      /`limit` is 1/,
    ],
    ['a name that skips nothing', () => SkipRateLimit('dayly'), 'SLUICE_BAD_OPTION', /"dayly".*\(default\)/],
  ])('%s', async (_, decorator, code, message) => {
    const options = { limit: 5, ...minute, groups: { api: { limit: 5, ...minute } } }
    const starting = start({ imports: [rateLimitModule(options)], controllers: [decorated(decorator())] })
    await expect(starting).rejects.toMatchObject({ code, message: expect.stringMatching(message) })
  })

  test.each([
    ['options that are none', undefined, 'SLUICE_BAD_OPTION'],
    ['an option that none inherits, without limits', { cost: 2 }, 'SLUICE_UNKNOWN_OPTION'],
    ['groups that are none', { groups: 3 }, 'SLUICE_BAD_OPTION'],
    ['a mistake in a group', { groups: { a: { limit: -1, ...minute } } }, 'SLUICE_BAD_OPTION'],
  ])('in the module: %s', async (_, options, code) => {
    const module = RateLimitModule.forRoot(options as RateLimitModuleOptions)
    await expect(start({ imports: [module] })).rejects.toMatchObject({ code })
  })

  test('two classes of one name that are limited both', async () => {
    const sameName = (path: string): Type => {
      @RateLimit({ limit: 5, ...minute })
      @Controller(path)
      class Items {
        @Get()
        get() {}
      }
      return Items
    }
    const starting = start({ imports: [rateLimitModule()], controllers: [sameName('a'), sameName('b')] })
    await expect(starting).rejects.toMatchObject({ code: 'SLUICE_DUPLICATE_NAME' })
  })

  test.each([
    ['RateLimit', () => RateLimit(undefined as never)],
    ['SkipRateLimit', () => SkipRateLimit(['a'] as never)],
  ])('what is no argument of %s, at once', (_, decorate) => {
    expect(decorate).toThrow(SluiceError)
  })
})
