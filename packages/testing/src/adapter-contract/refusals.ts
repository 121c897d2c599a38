import { once } from 'node:events'
import http from 'node:http'
import type { Store } from '@sluice/core'
import { limiterHeaders, send } from './http-client.js'
import { turns } from './poll.js'
import { contractPath } from './site.js'
import { type Sites, window } from './sites.js'

export function refusalsTests(sites: Sites): void {
  describe('refusals', () => {
    test.each([
      [undefined, 'application/problem+json'],
      ['*/*', 'application/problem+json'],
      ['application/json', 'application/problem+json'],
      ['application/problem+json', 'application/problem+json'],
      ['text/html, */*;q=0.1', 'application/problem+json'],
      ['text/html', 'text/plain; charset=utf-8'],
      ['text/html, application/json;q=0', 'text/plain; charset=utf-8'],
    ])('Accept: %s gets %s', async (accept, contentType) => {
      const server = await sites.serveLimited({ limit: 0 })
      const { headers } = await send(server, { headers: accept === undefined ? {} : { accept } })
      expect(headers['content-type']).toBe(contentType)
    })

    test('plain text says the same in one line', async () => {
      const server = await sites.serveLimited({ limit: 1 })
      await send(server)
      const { body } = await send(server, { headers: { accept: 'text/plain' } })
      expect(body).toBe('Quota exceeded. Try again in 60 seconds.\n')
    })

    test.each([
      ['Später wieder', 'text/plain; charset=utf-8', 'Später wieder'],
      [{ error: 'später' }, 'application/json; charset=utf-8', '{"error":"später"}'],
    ])('message: %j replaces the body', async (message, contentType, body) => {
      const server = await sites.serveLimited({ limit: 0, message })
      const answer = await send(server)
      expect(answer).toMatchObject({ status: 429, body })
      expect(answer.headers).toMatchObject({
        'content-type': contentType,
        'content-length': String(Buffer.byteLength(body)),
      })
    })

    test('statusCode replaces 429, in the body too', async () => {
      const server = await sites.serveLimited({ limit: 0, statusCode: 420 })
      const answer = await send(server)
      expect(answer.status).toBe(420)
      expect(JSON.parse(answer.body).status).toBe(420)
    })

    test('a HEAD request counts as a GET, and its refusal has the same headers and no body', async () => {
      const server = await sites.serveLimited({ limit: 2 })
      await send(server)
      expect((await send(server, { method: 'HEAD' })).headers['ratelimit-remaining']).toBe('0')
      const get = await send(server)
      const head = await send(server, { method: 'HEAD' })
      expect(head).toMatchObject({ status: 429, body: '' })
      expect({ ...head.headers, date: undefined }).toEqual({ ...get.headers, date: undefined })
    })

    test('onLimited replies in its place, once, with the headers set B52', async () => {
      const server = await sites.serve(({ rateLimit, onLimited }) => ({
        app: [
          rateLimit({
            limit: 1,
            ...window,
            onLimited: onLimited(async ({ reason, retryAfterMs }) => ({
              status: 418,
              body: `${reason} ${retryAfterMs}`,
            })),
          }),
        ],
      }))
      await send(server)
      const answer = await send(server)
      expect(answer).toMatchObject({ status: 418, body: 'quota 60000' })
      expect(limiterHeaders(answer)).toMatchObject({
        ratelimit: '"1-per-1m";r=0;t=60',
        'retry-after': '60',
      })
      expect(server.handled).toHaveLength(1)
      expect(server.errors).toEqual([])
    })

    test('what onLimited throws goes to the error path once', async () => {
      const error = new Error('from onLimited')
      const server = await sites.serve(({ rateLimit, onLimited }) => ({
        app: [rateLimit({ limit: 0, ...window, onLimited: onLimited(() => Promise.reject(error)) })],
      }))
      expect((await send(server)).status).toBe(500)
      expect(server.errors).toEqual([error])
      expect(server.handled).toHaveLength(0)
    })

    test('a client that leaves while onLimited works does not let the request go on', async () => {
      let closed: Promise<unknown> | undefined
      let request: http.ClientRequest | undefined
      let finished: (() => void) | undefined
      const onLimitedFinished = new Promise<void>((resolve) => {
        finished = resolve
      })
      const server = await sites.serve(({ rateLimit, onLimited }) => ({
        app: [
          rateLimit({
            limit: 0,
            ...window,
            onLimited: onLimited(async () => {
              request?.destroy()
              await closed
              finished?.()
              return undefined
            }),
          }),
        ],
        before: (response) => {
          closed = once(response, 'close')
        },
      }))
      request = http.get({ host: '127.0.0.1', port: server.port, path: contractPath, agent: false })
      request.on('error', () => {})
      await onLimitedFinished
      await turns(10)
      expect(server.handled).toHaveLength(0)
      expect(server.errors).toEqual([])
    })

    test('a denied request that was answered while the store was asked is not answered again B52', async () => {
      const { store } = sites
      let open: http.ServerResponse | undefined
      const late: Store = Object.create(store, {
        consume: {
          value: async (...args: Parameters<Store['consume']>) => {
            open?.writeHead(408).end('too late')
            return store.consume(...args)
          },
        },
      })
      const server = await sites.serveLimited(
        { store: late, limit: 0 },
        {
          before: (response) => {
            open = response
          },
        },
      )
      const answer = await send(server)
      expect(answer).toMatchObject({ status: 408, body: 'too late' })
      expect(limiterHeaders(answer)).toEqual({})
      expect(server.handled).toHaveLength(0)
      expect(server.errors).toEqual([])
    })

    test.each([
      ['a denied request does not go on', 0, 0],
      ['an allowed request goes on', 1, 1],
    ])('after headers went out nothing is written, and %s B52', async (_, limit, handled) => {
      let open: http.ServerResponse | undefined
      let replies = 0
      const onLimited = (): void => {
        replies += 1
      }
      const server = await sites.serveLimited(
        { limit, onLimited, onEvent: () => setImmediate(() => open?.end()) },
        {
          before: (response) => {
            response.writeHead(200).write('early')
            open = response
          },
        },
      )
      const answer = await send(server)
      expect(answer).toMatchObject({ status: 200, body: 'early' })
      expect(limiterHeaders(answer)).toEqual({})
      expect(server.handled).toHaveLength(handled)
      expect(replies).toBe(0)
      expect(server.errors).toEqual([])
    })
  })
}
