import { byApiKey, byIp, byUser, compose, type RequestContext } from '@sluice/core'
import { send } from './http-client.js'
import type { TestServer } from './site.js'
import { recordingLogger, type Sites } from './sites.js'

export function keysTests(sites: Sites): void {
  describe('keys', () => {
    test.each([
      ['a function', (_: unknown, { header }: RequestContext) => header('x-id')],
      ['an async function', async (_: unknown, { header }: RequestContext) => header('x-id')],
      ['byUser', byUser(async () => 7)],
      ['compose', compose(byIp(), byApiKey('x-id'))],
    ])('%s decides who is counted', async (kind, key) => {
      const server = await sites.serveLimited({ limit: 9, key })
      await send(server, { headers: { 'x-id': 'alice' } })
      const expected: Record<string, string> = {
        byUser: 'user:7',
        compose: `ip:127.0.0.1|${byApiKey.of('alice')}`,
      }
      expect(server.handled[0]?.key).toBe(expected[kind] ?? 'alice')
    })

    test('a key function that finds nothing falls back to the address', async () => {
      const server = await sites.serveLimited({ limit: 9, key: () => undefined })
      await send(server)
      expect(server.handled[0]?.key).toBe('ip:127.0.0.1')
    })

    test('an API key is counted by its hash, and a request without one by address only B11', async () => {
      const server = await sites.serveLimited({ limit: 1, key: byApiKey('x-api-key') })
      expect((await send(server, { headers: { 'x-api-key': 'secret' } })).status).toBe(200)
      expect(server.handled[0]?.key).toBe(byApiKey.of('secret'))
      const others = ['1.1.1.1', '2.2.2.2'].map((ip) => ({
        headers: { 'true-client-ip': ip, 'x-real-ip': ip },
      }))
      expect((await send(server, others[0])).status).toBe(200)
      expect((await send(server, others[1])).status).toBe(429)
    })

    test('the default key ignores what a client chooses, such as its user agent B20', async () => {
      const server = await sites.serveLimited({ limit: 3 })
      const statuses: unknown[] = []
      for (let i = 0; i < 6; i++)
        statuses.push((await send(server, { headers: { 'user-agent': `agent ${i}` } })).status)
      expect(statuses).toEqual([200, 200, 200, 429, 429, 429])
    })

    const forwarded = async (server: TestServer): Promise<unknown[]> => {
      const statuses: unknown[] = []
      for (let k = 1; k <= 5; k++) {
        statuses.push((await send(server, { headers: { 'x-forwarded-for': `1.1.1.${k}, 9.9.9.9` } })).status)
      }
      return statuses
    }

    test('behind one trusted proxy the address that it saw is counted B01', async () => {
      const { lines, logger } = recordingLogger()
      const server = await sites.serveLimited({ limit: 3, logger }, { trust: 'one-hop' })
      expect(await forwarded(server)).toEqual([200, 200, 200, 429, 429])
      expect(server.handled[0]?.key).toBe('ip:9.9.9.9')
      expect(lines).toEqual([])
    })

    test('where no proxy is trusted the peer is counted B01', async () => {
      const server = await sites.serveLimited({ limit: 3 })
      expect(await forwarded(server)).toEqual([200, 200, 200, 429, 429])
      expect(server.handled[0]?.key).toBe('ip:127.0.0.1')
    })

    test('trust in every proxy is warned of once B01', async () => {
      const { lines, logger } = recordingLogger()
      const server = await sites.serveLimited({ limit: 3, logger }, { trust: 'everyone' })
      await forwarded(server)
      expect(lines).toEqual([expect.stringContaining('(SLUICE_TRUSTS_EVERY_PROXY)')])
    })
  })
}
