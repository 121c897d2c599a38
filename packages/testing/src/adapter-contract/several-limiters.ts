import { MemoryStore, type RequestContext, type SluiceEvent } from '@sluice/core'
import { limiterHeaders, send, sendTimes } from './http-client.js'
import { headerSets, type Sites, window } from './sites.js'

export function severalLimitersTests(sites: Sites): void {
  describe('several limiters on one request', () => {
    test('add up to one list, and the older headers describe the tighter', async () => {
      const server = await sites.serve(({ rateLimit }) => ({
        app: [rateLimit({ name: 'app', limit: 100, algorithm: 'fixed-window', window: '1h' })],
        route: [rateLimit({ name: 'login', limit: 3, ...window })],
      }))
      expect(limiterHeaders(await send(server))).toEqual({
        'ratelimit-policy': '"app";q=100;w=3600, "login";q=3;w=60',
        ratelimit: '"app";r=99;t=3600, "login";r=2;t=60',
        'ratelimit-limit': '3',
        'ratelimit-remaining': '2',
        'ratelimit-reset': '60',
      })
      expect(server.handled[0]?.policies.map((policy) => policy.name)).toEqual(['app', 'login'])
    })

    test('the outer one keeps its numbers when the inner one denies, and Retry-After is the denying one’s B140', async () => {
      const server = await sites.serve(({ rateLimit }) => ({
        app: [rateLimit({ name: 'outer', limit: 100, algorithm: 'fixed-window', window: '1h' })],
        route: [rateLimit({ name: 'inner', limit: 1, ...window })],
      }))
      await send(server)
      const answer = await send(server)
      expect(answer.status).toBe(429)
      expect(limiterHeaders(answer)).toMatchObject({
        ratelimit: '"outer";r=98;t=3600, "inner";r=0;t=60',
        'ratelimit-limit': '1',
        'ratelimit-remaining': '0',
        'retry-after': '60',
      })
      expect(JSON.parse(answer.body)['violated-policies']).toEqual(['inner'])
    })

    test.each([
      ['draft-7', { ratelimit: 'limit=1, remaining=0, reset=60' }],
      ['draft-6', { 'ratelimit-limit': '1', 'ratelimit-remaining': '0', 'ratelimit-reset': '60' }],
      [
        'legacy',
        { 'x-ratelimit-limit': '1', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1728000060' },
      ],
    ])('%s tells of the one that denies, not of the outer one B140', async (headers, expected) => {
      const server = await sites.serve(({ rateLimit }) => ({
        app: [rateLimit({ name: 'outer', limit: 100, algorithm: 'fixed-window', window: '1h', headers })],
        route: [rateLimit({ name: 'inner', limit: 1, ...window, headers })],
      }))
      await send(server)
      expect(limiterHeaders(await send(server))).toMatchObject({ ...expected, 'retry-after': '60' })
    })

    test('policies of one name are written limiter/policy', async () => {
      const policies = (limit: number): object[] => [{ ...window, name: 'minute', limit }]
      const server = await sites.serve(({ rateLimit }) => ({
        app: [rateLimit({ name: 'app', policies: policies(5) })],
        route: [rateLimit({ name: 'route', policies: policies(3) })],
      }))
      expect((await send(server)).headers['ratelimit-policy']).toBe(
        '"app/minute";q=5;w=60, "route/minute";q=3;w=60',
      )
    })

    test('limiters that are called alike, each with a store of its own, are numbered', async () => {
      const server = await sites.serve(({ rateLimit }) => ({
        app: [rateLimit({ store: new MemoryStore(), limit: 5, ...window })],
        route: [rateLimit({ store: new MemoryStore(), limit: 5, ...window })],
      }))
      expect((await send(server)).headers['ratelimit-policy']).toBe(
        '"default/5-per-1m";q=5;w=60, "default/5-per-1m/2";q=5;w=60',
      )
    })

    test('one with headers: false is not in the list that another writes', async () => {
      const server = await sites.serve(({ rateLimit }) => ({
        app: [rateLimit({ name: 'silent', limit: 1, ...window, headers: false })],
        route: [rateLimit({ name: 'route', limit: 3, ...window, headers: headerSets })],
      }))
      expect(limiterHeaders(await send(server))).toEqual({
        'ratelimit-policy': '"route";q=3;w=60',
        ratelimit: '"route";r=2;t=60',
        'ratelimit-limit': '3',
        'ratelimit-remaining': '2',
        'ratelimit-reset': '60',
        'x-ratelimit-limit': '3',
        'x-ratelimit-remaining': '2',
        'x-ratelimit-reset': '1728000060',
      })
      expect(server.handled[0]?.policies.map((policy) => policy.name)).toEqual(['silent', 'route'])
    })

    test('the same one on application, group and route charges a request once B41', async () => {
      const server = await sites.serve(({ rateLimit }) => {
        const limit = [rateLimit({ limit: 10, ...window })]
        return { app: limit, group: limit, route: limit }
      })
      const statuses = await sendTimes(server, 11)
      expect(statuses).toEqual([...Array(10).fill(200), 429])
      expect(server.handled.at(-1)?.policies).toHaveLength(1)
    })

    test('hold both, however many keys a client makes up for the inner one B37', async () => {
      const byId = (_: unknown, { header }: RequestContext): string | undefined => header('x-id')
      const server = await sites.serve(({ rateLimit }) => ({
        app: [rateLimit({ name: 'address', limit: 12, ...window })],
        route: [rateLimit({ name: 'id', limit: 5, key: byId, ...window })],
      }))
      const served: number[] = []
      for (const id of ['a', 'b', 'c', 'd']) {
        const answers: unknown[] = []
        for (let i = 0; i < 6; i++) answers.push((await send(server, { headers: { 'x-id': id } })).status)
        served.push(answers.filter((status) => status === 200).length)
      }
      expect(served).toEqual([5, 5, 0, 0])
    })

    test('one that is met again after others takes nothing from the decision', async () => {
      const server = await sites.serve(({ rateLimit }) => {
        const outer = rateLimit({ name: 'outer', limit: 10, ...window })
        return {
          app: [outer],
          group: [rateLimit({ name: 'inner', limit: 5, ...window })],
          route: [outer],
        }
      })
      await send(server)
      expect(server.handled[0]?.policies.map((policy) => policy.name)).toEqual(['outer', 'inner'])
    })

    test('an outer one that denies keeps the inner one from charging', async () => {
      const heard: SluiceEvent[] = []
      const server = await sites.serve(({ rateLimit }) => ({
        app: [rateLimit({ name: 'outer', limit: 0, ...window })],
        route: [
          rateLimit({
            name: 'inner',
            limit: 1,
            ...window,
            onEvent: (event: SluiceEvent) => heard.push(event),
          }),
        ],
      }))
      expect((await send(server)).status).toBe(429)
      expect(heard).toEqual([])
    })
  })
}
