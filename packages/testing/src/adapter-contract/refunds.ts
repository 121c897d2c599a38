import { once } from 'node:events'
import http from 'node:http'
import type { SluiceEvent, Store } from '@sluice/core'
import { send, sendTimes } from './http-client.js'
import { turns } from './poll.js'
import { contractPath } from './site.js'
import { recordingLogger, type Sites, window } from './sites.js'

export function refundsTests(sites: Sites): void {
  describe('refundWhen', () => {
    const failed = (_request: unknown, response: { status?: unknown; statusCode?: unknown }): boolean =>
      Number(response.statusCode ?? response.status) >= 400
    const succeeded = (...args: Parameters<typeof failed>): boolean => !failed(...args)

    test('gives back what a response was charged; refusals neither charge nor give back B132', async () => {
      const statuses = [400, 400, 400]
      const server = await sites.serveLimited(
        { limit: 3, refundWhen: failed },
        { handler: () => statuses.shift() },
      )
      expect(await sendTimes(server, 8)).toEqual([400, 400, 400, 200, 200, 200, 429, 429])
    })

    test('gives back what a request was charged whose handler fails', async () => {
      const error = new Error('from the handler')
      const handler = (): Promise<never> => Promise.reject(error)
      const server = await sites.serveLimited({ limit: 1, refundWhen: failed }, { handler })
      expect(await sendTimes(server, 3)).toEqual([500, 500, 500])
      expect(server.errors).toEqual([error, error, error])
    })

    test('charges first, so that parallel requests cannot slip through B134', async () => {
      let guesses = 0
      let open: (() => void) | undefined
      const outcomeKnown = new Promise<void>((resolve) => {
        open = resolve
      })
      const server = await sites.serveLimited(
        { limit: 5, refundWhen: succeeded },
        {
          handler: async () => {
            guesses += 1
            await outcomeKnown
            return 401
          },
        },
      )
      const answers = Array.from({ length: 50 }, async () => {
        const { status } = await send(server)
        if (status === 429) refused += 1
        if (refused === 45) open?.()
        return status
      })
      let refused = 0
      const statuses = await Promise.all(answers)
      expect(guesses).toBe(5)
      expect(statuses.filter((status) => status === 401)).toHaveLength(5)
    })

    test('gives nothing back for a response that the client cut short', async () => {
      const limiter = sites.limiter({ name: 'cut', ...window, limit: 3 })
      let closed: Promise<unknown> | undefined
      let request: http.ClientRequest | undefined
      const server = await sites.serve(({ rateLimit }) => ({
        app: [rateLimit({ limiter, refundWhen: () => true })],
        before: (response) => {
          closed = once(response, 'close')
        },
        handler: async () => {
          request?.destroy()
          await closed
        },
      }))
      request = http.get({ host: '127.0.0.1', port: server.port, path: contractPath, agent: false })
      await once(request, 'error').catch(() => {})
      await closed
      await turns(10)
      expect(server.handled).toHaveLength(1)
      expect(await limiter.peek({ key: 'ip:127.0.0.1', cost: 0 })).toMatchObject({ remaining: 2 })
    })

    test('may be async', async () => {
      const server = await sites.serveLimited({ limit: 1, refundWhen: async () => true })
      expect(await sendTimes(server, 3)).toEqual([200, 200, 200])
    })

    test('that throws is warned of, and the reply stands', async () => {
      const { lines, logger } = recordingLogger()
      const refundWhen = (): never => {
        throw new Error('no idea')
      }
      const server = await sites.serveLimited({ limit: 3, logger, refundWhen })
      expect(await sendTimes(server, 2)).toEqual([200, 200])
      expect(lines).toEqual([expect.stringMatching(/refundWhen.*no idea.*SLUICE_REQUEST_FUNCTION/)])
      expect(server.errors).toEqual([])
    })

    test('on a store that fails by then is told of once, and the reply stands B119', async () => {
      const events: SluiceEvent[] = []
      const { store } = sites
      const failing = Object.assign(Object.create(store) as Store, {
        consume: (...args: Parameters<Store['consume']>) => store.consume(...args),
        refund: () => Promise.reject(new Error('down')),
      })
      const server = await sites.serveLimited({
        store: failing,
        limit: 3,
        refundWhen: () => true,
        onEvent: (event: SluiceEvent) => events.push(event),
      })
      expect(await sendTimes(server, 1)).toEqual([200])
      expect(events.filter(({ type }) => type === 'store-error')).toMatchObject([
        { error: { message: 'down' } },
      ])
      expect(server.errors).toEqual([])
    })
  })
}
