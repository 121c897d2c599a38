import type { SluiceEvent } from '../events.js'
import { Limiter } from '../limiter.js'
import type { Exchange } from './exchange.js'
import { byHeader, byUser } from './extractors.js'
import { HttpLimiter } from './http-limiter.js'
import type { RateLimitOptions } from './http-options.js'

type Trust = 'nobody' | 'some' | 'everyone'

/** A request that the framework got from 203.0.113.5. */
function exchange(trust: Trust = 'nobody', headers: Record<string, string> = {}): Exchange {
  return {
    request: headers,
    response: {},
    identity: {},
    method: 'GET',
    ip: '203.0.113.5',
    trustsEveryProxy: trust === 'everyone',
    trustsNoProxy: trust === 'nobody',
    gone: false,
    headersSent: false,
    header: (name) => headers[name],
    responseHeader: () => undefined,
    setResponseHeader: () => {},
    onEnd: () => {},
  }
}

/** Makes limiters of one name, and collects the codes of their warnings. */
function watch(name: string) {
  const codes: string[] = []
  const onEvent = (event: SluiceEvent): void => {
    if (event.type === 'warning') codes.push(event.code)
  }
  const options = { name, limit: 10, window: '1m', onEvent, logger: { warn: () => {} } } as const
  const make = (more: Partial<RateLimitOptions<unknown>> = {}) =>
    new HttpLimiter<unknown>({ ...options, ...more })
  /** One made at the start: before the turn in which the first request comes. */
  const makeAtStart = async (more?: Partial<RateLimitOptions<unknown>>) => {
    const limiter = make(more)
    await undefined
    return limiter
  }
  return { codes, make, makeAtStart }
}

describe('a limiter made in a handler', () => {
  test('is warned of once, from the second request on', async () => {
    const { codes, make } = watch('anew')
    const heard: number[] = []
    for (let request = 0; request < 4; request++) {
      await make().handle(exchange())
      heard.push(codes.length)
    }
    expect(heard).toEqual([0, 1, 1, 1])
    expect(codes).toEqual(['SLUICE_MADE_IN_HANDLER'])
  })

  test('is found after something the handler waited for', async () => {
    const { codes, make } = watch('after a lookup')
    const handler = async (): Promise<unknown> => {
      const limit = await Promise.resolve(5)
      return make({ limit }).handle(exchange())
    }
    await Promise.all([handler(), handler()])
    expect(codes).toEqual(['SLUICE_MADE_IN_HANDLER'])
  })

  test('is told apart from those made at the start, however many have its name', async () => {
    const { codes, makeAtStart } = watch('at the start')
    const limiters = await Promise.all(Array.from({ length: 3 }, () => makeAtStart()))
    for (const limiter of limiters) await limiter.handle(exchange())
    expect(codes).toEqual([])
  })

  test('is told apart from one made with the first request and kept', async () => {
    const { codes, make } = watch('kept')
    const limiter = make()
    for (let request = 0; request < 3; request++) await limiter.handle(exchange())
    expect(codes).toEqual([])
  })

  test('is told apart from those made when first needed and kept, each with its own name', async () => {
    for (const tenant of ['a', 'b', 'c']) {
      const { codes, make } = watch(`tenant ${tenant}`)
      await make().handle(exchange())
      expect(codes).toEqual([])
    }
  })

  test('is not warned of where the `limiter` that it counts in is made once', async () => {
    const codes: string[] = []
    const onEvent = (event: SluiceEvent): number => codes.push(event.type)
    const limiter = new Limiter({ name: 'given', limit: 10, window: '1m', onEvent })
    for (let request = 0; request < 3; request++)
      await new HttpLimiter<unknown>({ limiter }).handle(exchange())
    expect(codes).toEqual(['decision', 'decision', 'decision'])
  })

  test('does not fill the memory with names made of what clients send', async () => {
    const names = Array.from({ length: 1001 }, (_, i) => `client ${i}`)
    for (const name of names) await watch(name).make().handle(exchange())
    const { codes, make } = watch(names.at(-1) as string)
    await make().handle(exchange())
    expect(codes).toEqual([])
  })
})

describe('a forwarded header while the framework trusts no proxy', () => {
  const forwarded = { 'x-forwarded-for': '198.51.100.7' }

  test.each([
    ['X-Forwarded-For', forwarded],
    ['Forwarded', { forwarded: 'for=198.51.100.7' }],
  ])('is warned of once: %s', async (field, headers) => {
    const lines: string[] = []
    const limiter = await watch(field).makeAtStart({ logger: { warn: (line) => lines.push(line) } })
    await limiter.handle(exchange())
    for (let request = 0; request < 3; request++) await limiter.handle(exchange('nobody', headers))
    expect(lines).toEqual([
      expect.stringMatching(
        new RegExp(`a request came with ${field} .*trust proxy.*SLUICE_UNTRUSTED_FORWARDED_HEADER`),
      ),
    ])
  })

  test('is looked for until it came, and no longer', async () => {
    const limiter = await watch('looked for').makeAtStart()
    const asked = jest.fn((name: string): string | undefined => forwarded[name as 'x-forwarded-for'])
    await limiter.handle(exchange())
    await limiter.handle({ ...exchange(), header: asked })
    await limiter.handle({ ...exchange(), header: asked })
    expect(asked).toHaveBeenCalledTimes(1)
  })

  test('is looked for in the first hundred requests, and then in one of a hundred', async () => {
    const limiter = await watch('looked for at times').makeAtStart()
    const lookedAt: number[] = []
    for (let request = 1; request <= 300; request++) {
      const header = (name: string): undefined => {
        if (name === 'x-forwarded-for') lookedAt.push(request)
      }
      await limiter.handle({ ...exchange(), header })
    }
    expect(lookedAt).toEqual([...Array.from({ length: 100 }, (_, i) => i + 1), 200, 300])
  })

  test.each<[string, Partial<RateLimitOptions<unknown>>]>([
    ['a header', { key: byHeader('x-forwarded-for') }],
    ['the user', { key: byUser(() => 7) }],
  ])('does not matter to a limiter by %s', async (_, options) => {
    const { codes, makeAtStart } = watch('not by address')
    await (await makeAtStart(options)).handle(exchange('nobody', forwarded))
    expect(codes).toEqual([])
  })

  test('matters where an extractor found nothing, and the address stands in', async () => {
    const { codes, makeAtStart } = watch('stands in')
    const limiter = await makeAtStart({ key: byHeader('x-tenant') })
    await limiter.handle(exchange('nobody', forwarded))
    expect(codes).toEqual(['SLUICE_UNTRUSTED_FORWARDED_HEADER'])
  })

  test('is as it should be behind proxies that are trusted', async () => {
    const { codes, makeAtStart } = watch('trusted')
    const limiter = await makeAtStart()
    for (let request = 0; request < 2; request++) await limiter.handle(exchange('some', forwarded))
    expect(codes).toEqual([])
  })
})

describe('trust in every proxy', () => {
  test('is asked for once', async () => {
    const limiter = await watch('asked').makeAtStart()
    const trusts = jest.fn(() => false)
    for (let request = 0; request < 2; request++) {
      await limiter.handle(Object.defineProperty(exchange(), 'trustsEveryProxy', { get: trusts }))
    }
    expect(trusts).toHaveBeenCalledTimes(1)
  })

  test('matters only where an address is used B01', async () => {
    const { codes, makeAtStart } = watch('used')
    await (await makeAtStart({ key: () => 'k' })).handle(exchange('everyone'))
    expect(codes).toEqual([])
    await (await makeAtStart()).handle(exchange('everyone'))
    expect(codes).toEqual(['SLUICE_TRUSTS_EVERY_PROXY'])
  })
})
