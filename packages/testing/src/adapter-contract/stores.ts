import type { Store } from '@sluice/core'
import { limiterHeaders, send, sendTimes } from './http-client.js'
import { turns } from './poll.js'
import { headerSets, type Sites, window } from './sites.js'

export function storesTests(sites: Sites): void {
  describe('stores', () => {
    const failing = (answer: () => Promise<never>): Store => ({
      shared: true,
      consume: answer,
      peek: answer,
      refund: answer,
      reset: answer,
      close: async () => {},
    })
    const down = (): Store => failing(() => Promise.reject(new Error('connection lost')))
    const silent = (): Store => failing(() => new Promise(() => {}))

    test('onStoreError: allow serves without quota headers of any set and says so in the decision B115', async () => {
      const server = await sites.serveLimited({ store: down(), limit: 1, headers: headerSets })
      const answer = await send(server)
      expect(answer.status).toBe(200)
      expect(limiterHeaders(answer)).toEqual({})
      expect(server.handled).toMatchObject([{ allowed: true, reason: 'store-error', degraded: true }])
      expect(server.errors).toEqual([])
    })

    test.each([
      ['fails', down],
      ['does not answer in time', silent],
    ])('onStoreError: deny answers 503 when the store %s', async (_, broken) => {
      const options = { timeoutMs: 20, onStoreError: 'deny', headers: headerSets }
      const server = await sites.serveLimited({ store: broken(), limit: 1, ...options })
      const answer = await send(server)
      expect(answer.status).toBe(503)
      expect(limiterHeaders(answer)).toEqual({ 'retry-after': '1', 'cache-control': 'no-store' })
      expect(answer.headers['content-type']).toBe('application/problem+json')
      expect(JSON.parse(answer.body)).toEqual({
        type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
        title: 'Temporarily reduced capacity',
        status: 503,
        detail: 'The request could not be counted. Try again shortly.',
      })
      expect(server.handled).toHaveLength(0)
      expect(server.errors).toEqual([])
    })

    test('a failed store invents no numbers, and those of another limiter stay true B115', async () => {
      const headers = headerSets
      const server = await sites.serve(({ rateLimit }) => ({
        app: [rateLimit({ name: 'app', limit: 5, ...window, headers })],
        route: [
          rateLimit({ ...window, store: down(), name: 'route', limit: 1, onStoreError: 'deny', headers }),
        ],
      }))
      const answer = await send(server)
      expect(answer.status).toBe(503)
      expect(limiterHeaders(answer)).toEqual({
        'ratelimit-policy': '"app";q=5;w=60',
        ratelimit: '"app";r=4;t=60',
        'ratelimit-limit': '5',
        'ratelimit-remaining': '4',
        'ratelimit-reset': '60',
        'x-ratelimit-limit': '5',
        'x-ratelimit-remaining': '4',
        'x-ratelimit-reset': '1728000060',
        'retry-after': '1',
        'cache-control': 'no-store',
      })
    })

    test.each(['app', 'group', 'route'])(
      'the handler waits for a late store, in the place %s B59',
      async (place) => {
        const { store } = sites
        const late: Store = Object.create(store, {
          shared: { value: true },
          consume: {
            value: async (...args: Parameters<Store['consume']>) => {
              await turns(10)
              return store.consume(...args)
            },
          },
        })
        const server = await sites.serve(({ rateLimit }) => ({
          [place]: [rateLimit({ ...window, store: late, limit: 1 })],
        }))
        expect(await sendTimes(server, 2)).toEqual([200, 429])
        expect(server.handled).toHaveLength(1)
      },
    )
  })
}
