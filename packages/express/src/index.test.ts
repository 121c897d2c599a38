import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { adapterContract, type MakeServer } from '@sluice/testing'
import express, { type ErrorRequestHandler, type Request, type RequestHandler, type Response } from 'express'
import express4 from 'express4'
import { redisStore, timedStore } from '../../redis/test/contract-stores.js'
import { type Decision, type RateLimitOptions, rateLimit } from './index.js'

/** Makes sites with one version of Express. */
function makeServer(framework: typeof express): MakeServer {
  return async (build) => {
    const handled: (Decision | undefined)[] = []
    const errors: unknown[] = []
    const site = build({
      rateLimit: (options) => rateLimit(options as RateLimitOptions),
      onLimited:
        (reply): RateLimitOptions['onLimited'] =>
        async (_req, res, _next, decision) => {
          const custom = await reply(decision)
          if (custom) res.status(custom.status).send(custom.body)
        },
    })
    const app = framework().disable('x-powered-by').disable('etag')
    if (site.trust) app.set('trust proxy', site.trust === 'everyone' ? true : 1)
    const group = framework.Router()
    app.use((_req, res, next) => {
      res.set(site.responseHeaders ?? {})
      site.before?.(res)
      next()
    })
    for (const limit of site.app ?? []) app.use(limit as RequestHandler)
    for (const limit of site.group ?? []) group.use(limit as RequestHandler)
    const limits = (site.route ?? []) as RequestHandler[]
    group.get('/item', ...limits, async (req, res, next) => {
      handled.push(req.rateLimit)
      try {
        const answer = await site.handler?.()
        if (answer instanceof Readable) answer.pipe(res)
        else if (!res.headersSent) res.status(Number(answer ?? 200)).send('ok')
      } catch (error) {
        next(error)
      }
    })
    app.use('/api', group)
    const onError: ErrorRequestHandler = (error, _req, res, _next) => {
      errors.push(error)
      res.status(500).send('failed')
    }
    app.use(onError)
    const server = await new Promise<Server>((resolve) => {
      const listening = app.listen(0, '127.0.0.1', () => resolve(listening))
    })
    return {
      port: (server.address() as AddressInfo).port,
      handled,
      errors,
      close: () => new Promise((resolve) => server.close(() => resolve())),
    }
  }
}

describe('next', () => {
  const req = { headers: {}, method: 'GET', ip: '127.0.0.1', app: { get: () => false } } as unknown as Request
  const res = () =>
    ({ headersSent: false, getHeader: () => undefined, setHeader: () => {} }) as unknown as Response
  const run = (options: RateLimitOptions, next: jest.Mock) =>
    rateLimit({ logger: { warn: () => {} }, ...options })({ ...req } as Request, res(), next)

  test('is called once, without an argument, for an allowed request', async () => {
    const next = jest.fn()
    await run({ limit: 1, window: '1m' }, next)
    expect(next.mock.calls).toEqual([[]])
  })

  test('is called once, with the error, when a function of the request fails', async () => {
    const next = jest.fn()
    await run({ limit: 1, window: '1m', cost: () => -1 }, next)
    expect(next.mock.calls).toEqual([[expect.objectContaining({ code: 'SLUICE_BAD_COST' })]])
  })

  test('is not called again with what it throws', async () => {
    const next = jest.fn(() => {
      throw new Error('from next')
    })
    await expect(run({ limit: 1, window: '1m' }, next)).rejects.toThrow('from next')
    expect(next).toHaveBeenCalledTimes(1)
  })
})

test('a denied request that a reply of the user waves on passes the same limiter further in', async () => {
  const limit = rateLimit({ limit: 0, window: '1m', onLimited: (_req, _res, next) => next() })
  const app = express()
  app.use(limit)
  app.get('/', limit, (req, res) => void res.json({ allowed: req.rateLimit?.allowed }))
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  server.close()
  expect(await response.json()).toEqual({ allowed: false })
})

const express5Server = makeServer(express)
const express4Server = makeServer(express4 as unknown as typeof express)
adapterContract('Express 5', express5Server)
adapterContract('Express 4', express4Server)
adapterContract('Express 5, on a clock in Redis', express5Server, { makeStore: timedStore })
adapterContract('Express 4, on a RedisStore', express4Server, { makeStore: redisStore, clock: false })
