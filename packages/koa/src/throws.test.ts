import { MemoryStore } from '@sluice/core'
import Koa, { type Middleware } from 'koa'
import Koa2 from 'koa2'
import request, { type Response } from 'supertest'
import { listen } from '../../testing/test/serve.js'
import { type RateLimitError, type RateLimitOptions, rateLimit } from './index.js'

const minute = { algorithm: 'fixed-window', window: '1m' } as const
const never = (): boolean => false

/** A store on a clock that stands still; or one that is down. */
const standing = () => new MemoryStore({ nowUs: () => 1.8e15 })
const down = () => Object.assign(standing(), { consume: () => Promise.reject(new Error('down')) })

const quiet = { warn: () => {} }

/** What a handler of the user sends, from the error alone, as those do that start from a clean response. */
const fromError: Middleware = async (ctx, next) => {
  try {
    await next()
  } catch (error) {
    const { status, headers, message, decision } = error as RateLimitError
    for (const name of ctx.res.getHeaderNames()) ctx.remove(name)
    ctx.status = status
    ctx.set(headers)
    ctx.body = { error: message, reason: decision.reason }
  }
}

/** What a handler of the user sends that knows nothing of limits. */
const plain: Middleware = async (ctx, next) => {
  try {
    await next()
  } catch (error) {
    ctx.status = (error as RateLimitError).status
    ctx.body = { error: (error as Error).message }
  }
}

describe.each([
  ['Koa 3', Koa],
  ['Koa 2', Koa2 as unknown as typeof Koa],
])('a refusal that is thrown, %s', (_, Framework) => {
  let reported: jest.SpyInstance

  beforeEach(() => {
    reported = jest.spyOn(console, 'error').mockImplementation(() => {})
  })

  afterEach(() => reported.mockRestore())

  /** The answer to a second request at a limit of 1. */
  async function refused(options: Partial<RateLimitOptions>, ...outer: Middleware[]): Promise<Response> {
    const app = new Framework()
    for (const middleware of outer) app.use(middleware)
    app.use(rateLimit({ store: standing(), limit: 1, ...minute, logger: quiet, ...options }))
    app.use((ctx) => {
      ctx.body = 'ok'
    })
    const client = request(await listen(app.callback()))
    await client.get('/')
    return client.get('/')
  }

  /** The headers that the limiter wrote: all but those of the connection and the body. */
  function limiterHeaders({ headers }: Response) {
    const {
      date,
      connection,
      'keep-alive': _,
      'content-type': _type,
      'content-length': _length,
      ...own
    } = headers
    return own
  }

  const handlers: [string, Middleware[]][] = [
    ['the default error handler', []],
    ['an error handler that starts from a clean response', [fromError]],
    ['an error handler that knows nothing of limits', [plain]],
  ]

  test.each(handlers)('is shown by %s with every header of the limiter B49', async (_handler, outer) => {
    const answer = await refused({ throws: true }, ...outer)
    expect(answer.status).toBe(429)
    expect(limiterHeaders(answer)).toEqual({
      'ratelimit-policy': '"1-per-1m";q=1;w=60',
      ratelimit: '"1-per-1m";r=0;t=60',
      'ratelimit-limit': '1',
      'ratelimit-remaining': '0',
      'ratelimit-reset': '60',
      'retry-after': '60',
      'cache-control': 'no-store',
    })
    expect(limiterHeaders(answer)).toEqual(limiterHeaders(await refused({})))
    expect(answer.text).toContain('Quota exceeded. Try again in 60 seconds.')
  })

  test.each(handlers)('for a store that failed is a 503, shown by %s B49', async (_handler, outer) => {
    const answer = await refused({ throws: true, store: down(), onStoreError: 'deny' }, ...outer)
    expect(answer.status).toBe(503)
    expect(limiterHeaders(answer)).toEqual({ 'retry-after': '1', 'cache-control': 'no-store' })
    expect(answer.text).toContain('The request could not be counted. Try again shortly.')
  })

  test('is reported to nobody by the default error handler, be it 429 or 503 B50', async () => {
    await refused({ throws: true })
    await refused({ throws: true, store: down(), onStoreError: 'deny' })
    expect(reported).not.toHaveBeenCalled()
  })

  test('carries the headers of the limiters before it', async () => {
    const outer = rateLimit({ store: standing(), name: 'outer', limit: 9, ...minute })
    expect(limiterHeaders(await refused({ throws: true, name: 'inner' }, outer))).toMatchObject({
      'ratelimit-policy': '"outer";q=9;w=60, "inner";q=1;w=60',
      ratelimit: '"outer";r=7;t=60, "inner";r=0;t=60',
    })
  })

  test('is what `ctx.throw` makes, with the decision', async () => {
    const caught: unknown[] = []
    await refused({ throws: true }, (_ctx, next) => next().catch((error) => caught.push(error)))
    expect(caught).toEqual([expect.any(Framework.HttpError)])
    expect(caught[0]).toMatchObject({
      status: 429,
      statusCode: 429,
      expose: true,
      message: 'Quota exceeded. Try again in 60 seconds.',
      headers: { 'Retry-After': '60', 'Cache-Control': 'no-store' },
      decision: { allowed: false, reason: 'quota', limit: 1 },
    })
  })

  test('takes its message and status from the options', async () => {
    const answer = await refused({ throws: true, message: 'Later', statusCode: 403 })
    expect(answer).toMatchObject({ status: 403, text: 'Later' })
  })

  test('is not thrown once headers went out', async () => {
    const caught: unknown[] = []
    const answer = await refused({ throws: true, limit: 0 }, async (ctx, next) => {
      ctx.respond = false
      ctx.res.writeHead(200).write('early')
      await next().catch((error) => caught.push(error))
      ctx.res.end()
    })
    expect(answer).toMatchObject({ status: 200, text: 'early' })
    expect(caught).toEqual([])
  })

  test('leaves errors of the handler as they are', async () => {
    const error = new Error('from the handler')
    const caught: unknown[] = []
    const app = new Framework()
    app.use((_ctx, next) => next().catch((thrown) => caught.push(thrown)))
    app.use(rateLimit({ store: standing(), limit: 1, ...minute, throws: true }))
    app.use(() => Promise.reject(error))
    await request(await listen(app.callback())).get('/')
    expect(caught).toEqual([error])
    expect(caught[0]).toBe(error)
    expect(error).not.toHaveProperty('headers')
  })
})

test.each<[string, object, string]>([
  ['a `throws` that is no boolean', { throws: 'yes' }, 'throws'],
  ['a reply of the user beside it', { throws: true, onLimited: never }, 'onLimited'],
  ['a message that is no text beside it', { throws: true, message: { error: 'later' } }, 'message'],
  ['a status of which Koa makes 500 beside it', { throws: true, statusCode: 420 }, 'statusCode'],
])('%s is refused', (_, options, option) => {
  expect(() => rateLimit({ limit: 1, ...minute, ...options })).toThrow(
    expect.objectContaining({
      code: 'SLUICE_BAD_OPTION',
      message: expect.stringContaining(`\`${option}\``),
    }),
  )
})
