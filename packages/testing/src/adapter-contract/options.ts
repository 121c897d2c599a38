import { sendTimes } from './http-client.js'
import { type Sites, window } from './sites.js'

export function optionsTests(sites: Sites): void {
  describe('options', () => {
    test('a limiter made elsewhere can be given', async () => {
      const limiter = sites.limiter({ name: 'api', limit: 2, ...window })
      const server = await sites.serve(({ rateLimit }) => ({ app: [rateLimit({ limiter, cost: 2 })] }))
      expect(await sendTimes(server, 2)).toEqual([200, 429])
      expect(await limiter.peek({ key: 'ip:127.0.0.1' })).toMatchObject({ remaining: 0 })
    })

    test('a mistake in the options is an error at once', async () => {
      await expect(sites.serveLimited({ limit: 1, limt: 2 })).rejects.toMatchObject({
        code: 'SLUICE_UNKNOWN_OPTION',
      })
    })
  })
}
