import { once } from 'node:events'
import http from 'node:http'
import net from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import {
  byApiKey,
  byIp,
  byPlan,
  byUser,
  type Check,
  compose,
  type Decision,
  definePlans,
  type HeaderSet,
  Limiter,
  type Logger,
  MemoryStore,
  planByApiKey,
  type RequestContext,
  type SluiceError,
  type SluiceEvent,
  type Store,
} from '@sluice/core'

/** The path of the one route of a {@link Site}; `GET` and `HEAD` reach its handler. */
export const contractPath = '/api/item'

/** An application as the contract asks for it: one handler that answers `ok`, behind limiters. */
export interface Site {
  /** Which proxies to trust: `one-hop` is the one at 127.0.0.1. Default: none. */
  trust?: 'one-hop' | 'everyone'
  /** Headers that the response has before it meets a limiter. */
  responseHeaders?: Readonly<Record<string, string>>
  /** Runs before the limiters, with the raw response. */
  before?: (response: http.ServerResponse) => void
  /** Limiters of the whole application, of the group of routes under `/api`, and of the route, in this order. */
  app?: readonly unknown[]
  group?: readonly unknown[]
  route?: readonly unknown[]
  /** Runs in the handler, which waits for it and answers `ok` with the number that it returns as the status, else 200. */
  handler?: () => unknown
}

/** What an `onLimited` of {@link AdapterTools} sends. */
export interface Reply {
  readonly status: number
  readonly body: string
}

/** What a site is built with. */
export interface AdapterTools {
  /** The adapter's own. */
  rateLimit(options: object): unknown
  /** An `onLimited` that sends in the framework's way what `reply` returns, if anything. */
  onLimited(reply: (decision: Decision) => Promise<Reply | undefined>): unknown
}

/** A running site. */
export interface TestServer {
  readonly port: number
  /** The decision that the handler found on its request, for each time it ran. */
  readonly handled: readonly (Decision | undefined)[]
  /** What went to the framework's error path, which answers 500. */
  readonly errors: readonly unknown[]
  /** Ends when the server no longer listens. */
  close(): Promise<void>
}

/** Starts a server on 127.0.0.1 and a free port, for the site that `build` describes. */
export type MakeServer = (build: (tools: AdapterTools) => Site) => Promise<TestServer>

interface Answer {
  readonly status: number | undefined
  readonly headers: http.IncomingHttpHeaders
  readonly body: string
}

const window = { algorithm: 'fixed-window', window: '1m' } as const

/** Where the clock of the sites stands at first: on an edge of every window up to a day. */
const startUs = 20_000 * 86_400e6

const headerSets: readonly HeaderSet[] = ['draft-8', 'draft-7', 'draft-6', 'legacy']

/**
 * Defines the tests of what every adapter must do, over real HTTP. Uses the globals of Jest, or of Vitest with
 * `globals: true`.
 */
export function adapterContract(name: string, makeServer: MakeServer): void {
  let nowUs: number
  let store: MemoryStore
  let servers: TestServer[]

  beforeEach(() => {
    nowUs = startUs
    store = new MemoryStore({ nowUs: () => nowUs })
    servers = []
  })

  afterEach(() => Promise.all(servers.map((server) => server.close())))

  async function serve(build: (tools: AdapterTools) => Site): Promise<TestServer> {
    const server = await makeServer(build)
    servers.push(server)
    return server
  }

  /** A site whose one limiter, of the whole application, has these options. */
  function serveLimited(options: object, site: Site = {}): Promise<TestServer> {
    return serve(({ rateLimit }) => ({ ...site, app: [rateLimit({ store, ...window, ...options })] }))
  }

  describe(name, () => {
    describe('headers', () => {
      test('an allowed request carries draft-8 and draft-6 headers and reaches the handler', async () => {
        const server = await serveLimited({ limit: 2 })
        const answer = await send(server)
        expect(answer).toMatchObject({ status: 200, body: 'ok' })
        expect(limiterHeaders(answer)).toEqual({
          'ratelimit-policy': '"2-per-1m";q=2;w=60',
          ratelimit: '"2-per-1m";r=1;t=60',
          'ratelimit-limit': '2',
          'ratelimit-remaining': '1',
          'ratelimit-reset': '60',
        })
        expect(server.handled).toMatchObject([
          { allowed: true, reason: 'ok', remaining: 1, key: 'ip:127.0.0.1' },
        ])
      })

      test('a denied request is answered with 429 and problem details, byte for byte, and no error B50', async () => {
        const server = await serveLimited({ limit: 1 })
        await send(server)
        nowUs += 20.5e6
        const answer = await send(server)
        const body =
          '{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota exceeded",' +
          '"status":429,"detail":"Try again in 40 seconds.","violated-policies":["1-per-1m"]}'
        expect(answer).toMatchObject({ status: 429, body })
        const { date, connection, ...headers } = answer.headers
        expect(headers).toEqual({
          'ratelimit-policy': '"1-per-1m";q=1;w=60',
          ratelimit: '"1-per-1m";r=0;t=40',
          'ratelimit-limit': '1',
          'ratelimit-remaining': '0',
          'ratelimit-reset': '40',
          'retry-after': '40',
          'cache-control': 'no-store',
          'content-type': 'application/problem+json',
          'content-length': String(body.length),
        })
        expect(server.handled).toHaveLength(1)
        expect(server.errors).toEqual([])
      })

      test('waits are rounded up, so that an obedient client is admitted B136', async () => {
        const server = await serveLimited({ limit: 1, window: '2s' })
        await send(server)
        const waits: (string | undefined)[] = []
        for (const leftMs of [1200, 999, 1]) {
          nowUs = startUs + (2000 - leftMs) * 1000
          waits.push((await send(server)).headers['retry-after'])
        }
        expect(waits).toEqual(['2', '1', '1'])
        nowUs += 1000
        expect((await send(server)).status).toBe(200)
      })

      test('each policy of a limiter is a member, and the older headers describe the tightest', async () => {
        const policies = [
          { ...window, name: 'burst', limit: 2, window: '1s' },
          { ...window, name: 'daily', limit: 10, window: '1d' },
        ]
        const server = await serve(({ rateLimit }) => ({ app: [rateLimit({ store, policies })] }))
        await send(server)
        await send(server)
        expect(limiterHeaders(await send(server))).toEqual({
          'ratelimit-policy': '"burst";q=2;w=1, "daily";q=10;w=86400',
          ratelimit: '"burst";r=0;t=1, "daily";r=8;t=86400',
          'ratelimit-limit': '2',
          'ratelimit-remaining': '0',
          'ratelimit-reset': '1',
          'retry-after': '1',
          'cache-control': 'no-store',
        })
      })

      test.each([
        ['draft-8', { 'ratelimit-policy': '"2-per-1m";q=2;w=60', ratelimit: '"2-per-1m";r=1;t=60' }],
        [
          ['draft-6'],
          {
            'ratelimit-policy': '2;w=60',
            'ratelimit-limit': '2',
            'ratelimit-remaining': '1',
            'ratelimit-reset': '60',
          },
        ],
        ['draft-7', { 'ratelimit-policy': '2;w=60', ratelimit: 'limit=2, remaining=1, reset=60' }],
        [
          'legacy',
          { 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '1', 'x-ratelimit-reset': '1728000060' },
        ],
        [
          ['legacy', 'draft-6', 'draft-7', 'draft-8'],
          {
            'ratelimit-policy': '"2-per-1m";q=2;w=60',
            ratelimit: '"2-per-1m";r=1;t=60',
            'ratelimit-limit': '2',
            'ratelimit-remaining': '1',
            'ratelimit-reset': '60',
            'x-ratelimit-limit': '2',
            'x-ratelimit-remaining': '1',
            'x-ratelimit-reset': '1728000060',
          },
        ],
        [false, {}],
      ])('headers: %j sends what it names', async (headers, expected) => {
        const server = await serveLimited({ limit: 2, headers })
        expect(limiterHeaders(await send(server))).toEqual(expected)
      })

      test('legacyReset: delta counts from now, as the other sets do B142', async () => {
        const server = await serveLimited({ limit: 2, headers: 'legacy', legacyReset: 'delta' })
        expect(limiterHeaders(await send(server))).toMatchObject({ 'x-ratelimit-reset': '60' })
      })

      type Told = (headers: http.IncomingHttpHeaders) => number
      const fromNow = (value: unknown): number => nowUs + Number(value) * 1e6
      test.each<[string, Told]>([
        ['Retry-After', (headers) => fromNow(headers['retry-after'])],
        ['t of draft-8', ({ ratelimit }) => fromNow(/;t=(\d+)$/.exec(ratelimit as string)?.[1])],
        ['RateLimit-Reset', (headers) => fromNow(headers['ratelimit-reset'])],
        ['X-RateLimit-Reset', (headers) => Number(headers['x-ratelimit-reset']) * 1e6],
      ])(
        'a denied client that comes back at the whole second of %s is admitted, and not one before B136 B142',
        async (_, told) => {
          const server = await serveLimited({ limit: 1, window: '1500ms', headers: headerSets })
          for (const sinceUs of [0, 1, 300_000, 500_001, 1_499_999]) {
            const endUs = nowUs - (nowUs % 1.5e6) + 4.5e6
            nowUs = endUs - 1.5e6 + sinceUs
            await send(server)
            const denied = await send(server)
            expect(denied.status).toBe(429)
            const toldUs = told(denied.headers)
            expect(toldUs - 1e6).toBeLessThan(endUs)
            nowUs = toldUs
            expect((await send(server)).status).toBe(200)
          }
        },
      )

      test.each([
        ['fixed-window', 60],
        ['sliding-window-log', 60],
        ['sliding-window-counter', 120],
        ['sliding-window-ring', 120],
        ['token-bucket', 60],
        ['gcra', 60],
      ])(
        '%s: a denial at any moment tells of a wait of at least 1 s and at most %d s B138',
        async (algorithm, most) => {
          const key = byApiKey('x-api-key')
          const server = await serveLimited({ algorithm, limit: 1, headers: headerSets, key })
          for (const sinceUs of [0, 1, 1e6, 30e6, 59_999_999]) {
            const client = { headers: { 'x-api-key': String(sinceUs) } }
            nowUs = startUs + sinceUs
            await send(server, client)
            const { status, headers } = await send(server, client)
            expect(status).toBe(429)
            for (const wait of [Number(headers['retry-after']), Number(headers['ratelimit-reset'])]) {
              expect(wait).toBeGreaterThanOrEqual(1)
              expect(wait).toBeLessThanOrEqual(most)
            }
          }
        },
      )

      test('retryJitterMs makes the waits of a denied client longer, all by as much', async () => {
        const server = await serveLimited({ limit: 1, headers: headerSets, retryJitterMs: 3000 })
        expect(limiterHeaders(await send(server))).toMatchObject({ 'ratelimit-reset': '60' })
        for (let i = 0; i < 10; i++) {
          const { body, headers } = await send(server)
          const wait = Number(headers['retry-after'])
          expect([60, 61, 62, 63]).toContain(wait)
          expect(headers).toMatchObject({
            ratelimit: `"1-per-1m";r=0;t=${wait}`,
            'ratelimit-reset': String(wait),
            'x-ratelimit-reset': String(startUs / 1e6 + wait),
          })
          expect(JSON.parse(body).detail).toBe(`Try again in ${wait} seconds.`)
        }
      })

      test('with headers: false a response tells nothing of its client, so that shared caches may keep it B144', async () => {
        const server = await serveLimited(
          { limit: 9, headers: false, key: byApiKey('x-api-key') },
          { responseHeaders: { 'Cache-Control': 'public, max-age=60', ETag: '"v1"' } },
        )
        const headersFor = async (client: string): Promise<unknown> => {
          const { date, ...headers } = (await send(server, { headers: { 'x-api-key': client } })).headers
          return headers
        }
        const first = await headersFor('alice')
        expect(first).toMatchObject({ 'cache-control': 'public, max-age=60', etag: '"v1"' })
        expect(await headersFor('alice')).toEqual(first)
        expect(await headersFor('bob')).toEqual(first)
      })

      test('headers: false still tells a denied client when to come back', async () => {
        const server = await serveLimited({ limit: 1, headers: false })
        await send(server)
        expect(limiterHeaders(await send(server))).toEqual({
          'retry-after': '60',
          'cache-control': 'no-store',
        })
      })

      test('list members of others are kept', async () => {
        const responseHeaders = { 'RateLimit-Policy': '"edge";q=9;w=1', RateLimit: '"edge";r=8;t=1' }
        const server = await serve(({ rateLimit }) => ({
          responseHeaders,
          app: [rateLimit({ store, name: 'app', limit: 5, ...window })],
          route: [rateLimit({ store, name: 'route', limit: 3, ...window })],
        }))
        expect(limiterHeaders(await send(server))).toMatchObject({
          'ratelimit-policy': '"edge";q=9;w=1, "app";q=5;w=60, "route";q=3;w=60',
          ratelimit: '"edge";r=8;t=1, "app";r=4;t=60, "route";r=2;t=60',
        })
      })

      test('where CORS is in use the headers are exposed, beside what was exposed before', async () => {
        const server = await serveLimited(
          { limit: 1 },
          {
            responseHeaders: {
              'Access-Control-Allow-Origin': '*',
              'Access-Control-Expose-Headers': 'X-Total',
            },
          },
        )
        const exposed =
          'X-Total, RateLimit-Policy, RateLimit, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset'
        expect((await send(server)).headers['access-control-expose-headers']).toBe(exposed)
        expect((await send(server)).headers['access-control-expose-headers']).toBe(`${exposed}, Retry-After`)
      })

      test('a client can put nothing into them', async () => {
        const server = await serveLimited({ limit: 2, key: byApiKey('x-api-key') })
        const plain = await send(server, { headers: { 'x-api-key': 'plain' } })
        const crafted = await send(server, {
          headers: { 'x-api-key': 'a", "evil";r=9', accept: '"evil", */*', 'x-forwarded-for': '"evil";r=9' },
        })
        expect(limiterHeaders(crafted)).toEqual(limiterHeaders(plain))
      })

      test('limit 0 refuses everything, with no time at which to come back', async () => {
        const server = await serveLimited({ limit: 0 })
        const answer = await send(server)
        expect(answer.status).toBe(429)
        expect(limiterHeaders(answer)).toEqual({
          'ratelimit-policy': '"0-per-1m";q=0;w=60',
          ratelimit: '"0-per-1m";r=0',
          'ratelimit-limit': '0',
          'ratelimit-remaining': '0',
          'ratelimit-reset': '0',
          'cache-control': 'no-store',
        })
      })
    })

    describe('several limiters on one request', () => {
      test('add up to one list, and the older headers describe the tighter', async () => {
        const server = await serve(({ rateLimit }) => ({
          app: [rateLimit({ store, name: 'app', limit: 100, algorithm: 'fixed-window', window: '1h' })],
          route: [rateLimit({ store, name: 'login', limit: 3, ...window })],
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
        const server = await serve(({ rateLimit }) => ({
          app: [rateLimit({ store, name: 'outer', limit: 100, algorithm: 'fixed-window', window: '1h' })],
          route: [rateLimit({ store, name: 'inner', limit: 1, ...window })],
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
        const server = await serve(({ rateLimit }) => ({
          app: [
            rateLimit({ store, name: 'outer', limit: 100, algorithm: 'fixed-window', window: '1h', headers }),
          ],
          route: [rateLimit({ store, name: 'inner', limit: 1, ...window, headers })],
        }))
        await send(server)
        expect(limiterHeaders(await send(server))).toMatchObject({ ...expected, 'retry-after': '60' })
      })

      test('policies of one name are written limiter/policy', async () => {
        const policies = (limit: number): object[] => [{ ...window, name: 'minute', limit }]
        const server = await serve(({ rateLimit }) => ({
          app: [rateLimit({ store, name: 'app', policies: policies(5) })],
          route: [rateLimit({ store, name: 'route', policies: policies(3) })],
        }))
        expect((await send(server)).headers['ratelimit-policy']).toBe(
          '"app/minute";q=5;w=60, "route/minute";q=3;w=60',
        )
      })

      test('limiters that are called alike, each with a store of its own, are numbered', async () => {
        const server = await serve(({ rateLimit }) => ({
          app: [rateLimit({ limit: 5, ...window })],
          route: [rateLimit({ limit: 5, ...window })],
        }))
        expect((await send(server)).headers['ratelimit-policy']).toBe(
          '"default/5-per-1m";q=5;w=60, "default/5-per-1m/2";q=5;w=60',
        )
      })

      test('one with headers: false is not in the list that another writes', async () => {
        const server = await serve(({ rateLimit }) => ({
          app: [rateLimit({ store, name: 'silent', limit: 1, ...window, headers: false })],
          route: [rateLimit({ store, name: 'route', limit: 3, ...window, headers: headerSets })],
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
        const server = await serve(({ rateLimit }) => {
          const limit = [rateLimit({ store, limit: 10, ...window })]
          return { app: limit, group: limit, route: limit }
        })
        const statuses = await sendTimes(server, 11)
        expect(statuses).toEqual([...Array(10).fill(200), 429])
        expect(server.handled.at(-1)?.policies).toHaveLength(1)
      })

      test('one that is met again after others takes nothing from the decision', async () => {
        const server = await serve(({ rateLimit }) => {
          const outer = rateLimit({ store, name: 'outer', limit: 10, ...window })
          return {
            app: [outer],
            group: [rateLimit({ store, name: 'inner', limit: 5, ...window })],
            route: [outer],
          }
        })
        await send(server)
        expect(server.handled[0]?.policies.map((policy) => policy.name)).toEqual(['outer', 'inner'])
      })

      test('an outer one that denies keeps the inner one from charging', async () => {
        const heard: SluiceEvent[] = []
        const server = await serve(({ rateLimit }) => ({
          app: [rateLimit({ store, name: 'outer', limit: 0, ...window })],
          route: [
            rateLimit({
              store,
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

    describe('cost and limit', () => {
      test.each([
        ['0 charges nothing', 0, 5],
        ['n charges n', 3, 2],
        [
          'a function of the request',
          async (_: unknown, { header }: RequestContext) => Number(header('x-cost')),
          1,
        ],
      ])('cost: %s', async (_, cost, remaining) => {
        const server = await serveLimited({ limit: 5, cost })
        const { headers } = await send(server, { headers: { 'x-cost': '4' } })
        expect(headers['ratelimit-remaining']).toBe(String(remaining))
      })

      test('a cost above the limit is denied with no time at which to come back', async () => {
        const server = await serveLimited({ limit: 2, cost: 3 })
        const answer = await send(server)
        expect(answer.status).toBe(429)
        expect(limiterHeaders(answer)).toEqual({
          'ratelimit-policy': '"2-per-1m";q=2;w=60',
          ratelimit: '"2-per-1m";r=2',
          'ratelimit-limit': '2',
          'ratelimit-remaining': '2',
          'ratelimit-reset': '0',
          'cache-control': 'no-store',
        })
      })

      test('a limit may depend on the request', async () => {
        const limit = (_: unknown, { header }: RequestContext): number => (header('x-vip') ? 3 : 1)
        const server = await serveLimited({ name: 'api', limit })
        expect(limiterHeaders(await send(server))).toMatchObject({ ratelimit: '"api";r=0;t=60' })
        expect((await send(server)).status).toBe(429)
        expect(limiterHeaders(await send(server, { headers: { 'x-vip': '1' } }))).toMatchObject({
          'ratelimit-policy': '"api";q=3;w=60',
          ratelimit: '"api";r=1;t=60',
        })
      })
    })

    describe('functions of the request that fail go to the error path once, and nothing is charged', () => {
      function throws(): never {
        throw new Error('no such account')
      }
      const rejects = () => Promise.reject(new Error('no such account'))
      const neverSettles = () => new Promise(() => {})
      type Failure = ['key' | 'cost' | 'limit' | 'skip', string, () => unknown, string]
      const failures: Failure[] = [
        ['key', 'throws', throws, 'SLUICE_REQUEST_FUNCTION'],
        ['key', 'rejects', rejects, 'SLUICE_REQUEST_FUNCTION'],
        ['key', 'never settles', neverSettles, 'SLUICE_REQUEST_FUNCTION'],
        ['key', 'returns a number', () => 42, 'SLUICE_BAD_KEY'],
        ['key', 'returns an object', async () => ({}), 'SLUICE_BAD_KEY'],
        ['cost', 'throws', throws, 'SLUICE_REQUEST_FUNCTION'],
        ['cost', 'returns -1', () => -1, 'SLUICE_BAD_COST'],
        ['cost', 'returns 1.5', () => 1.5, 'SLUICE_BAD_COST'],
        ['cost', 'returns NaN', async () => Number.NaN, 'SLUICE_BAD_COST'],
        ['cost', 'returns text', () => '3', 'SLUICE_BAD_COST'],
        ['limit', 'rejects', rejects, 'SLUICE_REQUEST_FUNCTION'],
        ['limit', 'returns NaN', () => Number.NaN, 'SLUICE_BAD_LIMIT'],
        ['limit', 'returns text', async () => '10', 'SLUICE_BAD_LIMIT'],
        ['cost', 'returns nothing', () => undefined, 'SLUICE_BAD_COST'],
        ['limit', 'returns nothing', () => undefined, 'SLUICE_BAD_LIMIT'],
        ['skip', 'throws', throws, 'SLUICE_REQUEST_FUNCTION'],
        ['skip', 'never settles', neverSettles, 'SLUICE_REQUEST_FUNCTION'],
      ]
      test.each(failures)('%s %s B55', async (option, _, fails, code) => {
        const fine = { key: 'k', cost: 1, limit: 5, skip: false }[option]
        const server = await serveLimited({
          name: 'api',
          limit: 5,
          timeoutMs: 20,
          [option]: (_request: unknown, { header }: RequestContext) => (header('x-bad') ? fails() : fine),
        })
        expect((await send(server, { headers: { 'x-bad': '1' } })).status).toBe(500)
        expect(server.errors).toHaveLength(1)
        expect((server.errors[0] as SluiceError).code).toBe(code)
        expect(server.handled).toHaveLength(0)
        expect((await send(server)).headers['ratelimit-remaining']).toBe('4')
        expect(server.errors).toHaveLength(1)
      })

      test('the message names option and limiter, and the cause is kept', async () => {
        const server = await serveLimited({ name: 'api', limit: 5, key: throws })
        await send(server)
        expect(server.errors[0]).toMatchObject({
          message: 'Option `key` of limiter "api" threw (SLUICE_REQUEST_FUNCTION)',
          cause: new Error('no such account'),
        })
      })
    })

    test('an error of the handler reaches the error path as it is, once', async () => {
      const error = new Error('from the handler')
      const server = await serveLimited(
        { limit: 5 },
        {
          handler: () => {
            throw error
          },
        },
      )
      expect((await send(server)).status).toBe(500)
      expect(server.errors).toEqual([error])
      expect(server.errors[0]).toBe(error)
    })

    describe('keys', () => {
      test.each([
        ['a function', (_: unknown, { header }: RequestContext) => header('x-id')],
        ['an async function', async (_: unknown, { header }: RequestContext) => header('x-id')],
        ['byUser', byUser(async () => 7)],
        ['compose', compose(byIp(), byApiKey('x-id'))],
      ])('%s decides who is counted', async (kind, key) => {
        const server = await serveLimited({ limit: 9, key })
        await send(server, { headers: { 'x-id': 'alice' } })
        const expected: Record<string, string> = {
          byUser: 'user:7',
          compose: `ip:127.0.0.1|${byApiKey.of('alice')}`,
        }
        expect(server.handled[0]?.key).toBe(expected[kind] ?? 'alice')
      })

      test('a key function that finds nothing falls back to the address', async () => {
        const server = await serveLimited({ limit: 9, key: () => undefined })
        await send(server)
        expect(server.handled[0]?.key).toBe('ip:127.0.0.1')
      })

      test('an API key is counted by its hash, and a request without one by address only B11', async () => {
        const server = await serveLimited({ limit: 1, key: byApiKey('x-api-key') })
        expect((await send(server, { headers: { 'x-api-key': 'secret' } })).status).toBe(200)
        expect(server.handled[0]?.key).toBe(byApiKey.of('secret'))
        const others = ['1.1.1.1', '2.2.2.2'].map((ip) => ({
          headers: { 'true-client-ip': ip, 'x-real-ip': ip },
        }))
        expect((await send(server, others[0])).status).toBe(200)
        expect((await send(server, others[1])).status).toBe(429)
      })

      test('the default key ignores what a client chooses, such as its user agent B20', async () => {
        const server = await serveLimited({ limit: 3 })
        const statuses: unknown[] = []
        for (let i = 0; i < 6; i++)
          statuses.push((await send(server, { headers: { 'user-agent': `agent ${i}` } })).status)
        expect(statuses).toEqual([200, 200, 200, 429, 429, 429])
      })

      const forwarded = async (server: TestServer): Promise<unknown[]> => {
        const statuses: unknown[] = []
        for (let k = 1; k <= 5; k++) {
          statuses.push(
            (await send(server, { headers: { 'x-forwarded-for': `1.1.1.${k}, 9.9.9.9` } })).status,
          )
        }
        return statuses
      }

      test('behind one trusted proxy the address that it saw is counted B01', async () => {
        const { lines, logger } = recordingLogger()
        const server = await serveLimited({ limit: 3, logger }, { trust: 'one-hop' })
        expect(await forwarded(server)).toEqual([200, 200, 200, 429, 429])
        expect(server.handled[0]?.key).toBe('ip:9.9.9.9')
        expect(lines).toEqual([])
      })

      test('where no proxy is trusted the peer is counted B01', async () => {
        const server = await serveLimited({ limit: 3 })
        expect(await forwarded(server)).toEqual([200, 200, 200, 429, 429])
        expect(server.handled[0]?.key).toBe('ip:127.0.0.1')
      })

      test('trust in every proxy is warned of once B01', async () => {
        const { lines, logger } = recordingLogger()
        const server = await serveLimited({ limit: 3, logger }, { trust: 'everyone' })
        await forwarded(server)
        expect(lines).toEqual([expect.stringContaining('(SLUICE_TRUSTS_EVERY_PROXY)')])
      })
    })

    describe('plans', () => {
      const plans = definePlans({
        free: { ...window, limit: 1 },
        pro: [
          { ...window, name: 'burst', limit: 5 },
          { ...window, name: 'daily', limit: 50, window: '1d' },
        ],
        enterprise: 'unlimited',
      })
      const plan = (_: unknown, { header }: RequestContext): string | undefined => header('x-plan')
      const asked = (tier: string): { headers: Record<string, string> } => ({ headers: { 'x-plan': tier } })

      test('each request follows the policies of its plan', async () => {
        const server = await serve(({ rateLimit }) => ({ app: [rateLimit({ store, plans, plan })] }))
        expect((await send(server, asked('free'))).headers['ratelimit-policy']).toBe('"1-per-1m";q=1;w=60')
        expect((await send(server, asked('pro'))).headers['ratelimit-policy']).toBe(
          '"burst";q=5;w=60, "daily";q=50;w=86400',
        )
        expect(server.handled.map((decision) => decision?.plan)).toEqual(['free', 'pro'])
      })

      test('an unlimited plan passes without quota headers', async () => {
        const server = await serve(({ rateLimit }) => ({
          app: [rateLimit({ store, plans, plan: 'enterprise' })],
        }))
        const answer = await send(server)
        expect(answer.status).toBe(200)
        expect(limiterHeaders(answer)).toEqual({})
        expect(server.handled).toMatchObject([{ reason: 'unlimited', remaining: Number.POSITIVE_INFINITY }])
      })

      test.each(['gold', '__proto__', 'Free'])('an unknown plan %s goes to the error path', async (tier) => {
        const server = await serve(({ rateLimit }) => ({ app: [rateLimit({ store, plans, plan })] }))
        expect((await send(server, asked(tier))).status).toBe(500)
        expect(server.errors.map((error) => (error as SluiceError).code)).toEqual(['SLUICE_UNKNOWN_PLAN'])
      })

      test('with defaultPlan an unknown plan follows it and is warned of once', async () => {
        const { lines, logger } = recordingLogger()
        const options = { store, plans, plan, defaultPlan: 'pro', logger }
        const server = await serve(({ rateLimit }) => ({ app: [rateLimit(options)] }))
        await send(server, asked('gold'))
        await send(server, asked('gold'))
        await send(server)
        expect(server.handled.map((decision) => decision?.plan)).toEqual(['pro', 'pro', 'pro'])
        expect(lines).toEqual([
          'sluice: no plan is called "gold", so `defaultPlan` applies (SLUICE_UNKNOWN_PLAN)',
        ])
      })

      test('byPlan counts all requests of a plan together', async () => {
        const server = await serve(({ rateLimit }) => ({
          app: [rateLimit({ store, plans, plan, key: byPlan() })],
        }))
        await send(server, asked('free'))
        expect(server.handled[0]?.key).toBe('plan:free')
      })

      test('planByApiKey finds the plan of a key, and defaultPlan serves the others', async () => {
        const options = {
          store,
          plans,
          plan: planByApiKey({ 'k-1': 'pro' }),
          defaultPlan: 'free',
          key: byApiKey('x-api-key'),
        }
        const server = await serve(({ rateLimit }) => ({ app: [rateLimit(options)] }))
        await send(server, { headers: { 'x-api-key': 'k-1' } })
        await send(server, { headers: { 'x-api-key': 'k-2' } })
        await send(server)
        expect(server.handled.map((decision) => decision?.plan)).toEqual(['pro', 'free', 'free'])
      })
    })

    describe('skip and preflights', () => {
      test.each([
        [true, 'skipped'],
        [Promise.resolve(true), 'skipped'],
        ['yes', 'ok'],
        [1, 'ok'],
        [undefined, 'ok'],
      ])('skip that returns %p: %s', async (value, reason) => {
        const server = await serveLimited({ limit: 5, skip: () => value })
        const answer = await send(server)
        expect(server.handled).toMatchObject([{ reason }])
        expect('ratelimit' in answer.headers).toBe(reason === 'ok')
      })

      const preflight = {
        method: 'OPTIONS',
        headers: { origin: 'https://a.example', 'access-control-request-method': 'GET' },
      }

      test('preflights pass uncounted, and a refusal keeps its CORS headers B39', async () => {
        const server = await serveLimited(
          { limit: 10 },
          { responseHeaders: { 'Access-Control-Allow-Origin': '*' } },
        )
        for (let i = 0; i < 10; i++) {
          expect(limiterHeaders(await send(server, preflight))).toEqual({})
          expect((await send(server)).status).toBe(200)
        }
        const refused = await send(server)
        expect(refused.status).toBe(429)
        expect(refused.headers).toMatchObject({
          'access-control-allow-origin': '*',
          'access-control-expose-headers': expect.stringContaining('Retry-After'),
        })
      })

      test("preflight: 'count' counts them", async () => {
        const server = await serveLimited({ limit: 1, preflight: 'count' })
        await send(server, preflight)
        expect((await send(server)).status).toBe(429)
      })

      test('an OPTIONS request that is no preflight counts', async () => {
        const server = await serveLimited({ limit: 1 })
        await send(server, { method: 'OPTIONS' })
        expect((await send(server)).status).toBe(429)
      })
    })

    test('a shadow policy never refuses and is left out of headers, but is in the decision', async () => {
      const policies = [
        { ...window, name: 'trial', limit: 0, shadow: true },
        { ...window, name: 'real', limit: 2 },
      ]
      const server = await serve(({ rateLimit }) => ({ app: [rateLimit({ store, policies })] }))
      const answer = await send(server)
      expect(answer.status).toBe(200)
      expect(limiterHeaders(answer)).toMatchObject({
        ratelimit: '"real";r=1;t=60',
        'ratelimit-policy': '"real";q=2;w=60',
      })
      expect(server.handled[0]?.policies).toMatchObject([
        { name: 'trial', allowed: false, shadow: true },
        { name: 'real', allowed: true, shadow: false },
      ])
    })

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
        const server = await serveLimited({ limit: 0 })
        const { headers } = await send(server, { headers: accept === undefined ? {} : { accept } })
        expect(headers['content-type']).toBe(contentType)
      })

      test('plain text says the same in one line', async () => {
        const server = await serveLimited({ limit: 1 })
        await send(server)
        const { body } = await send(server, { headers: { accept: 'text/plain' } })
        expect(body).toBe('Quota exceeded. Try again in 60 seconds.\n')
      })

      test.each([
        ['Später wieder', 'text/plain; charset=utf-8', 'Später wieder'],
        [{ error: 'später' }, 'application/json; charset=utf-8', '{"error":"später"}'],
      ])('message: %j replaces the body', async (message, contentType, body) => {
        const server = await serveLimited({ limit: 0, message })
        const answer = await send(server)
        expect(answer).toMatchObject({ status: 429, body })
        expect(answer.headers).toMatchObject({
          'content-type': contentType,
          'content-length': String(Buffer.byteLength(body)),
        })
      })

      test('statusCode replaces 429, in the body too', async () => {
        const server = await serveLimited({ limit: 0, statusCode: 420 })
        const answer = await send(server)
        expect(answer.status).toBe(420)
        expect(JSON.parse(answer.body).status).toBe(420)
      })

      test('a HEAD request counts as a GET, and its refusal has the same headers and no body', async () => {
        const server = await serveLimited({ limit: 2 })
        await send(server)
        expect((await send(server, { method: 'HEAD' })).headers['ratelimit-remaining']).toBe('0')
        const get = await send(server)
        const head = await send(server, { method: 'HEAD' })
        expect(head).toMatchObject({ status: 429, body: '' })
        expect({ ...head.headers, date: undefined }).toEqual({ ...get.headers, date: undefined })
      })

      test('onLimited replies in its place, once, with the headers set B52', async () => {
        const server = await serve(({ rateLimit, onLimited }) => ({
          app: [
            rateLimit({
              store,
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
        const server = await serve(({ rateLimit, onLimited }) => ({
          app: [rateLimit({ store, limit: 0, ...window, onLimited: onLimited(() => Promise.reject(error)) })],
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
        const server = await serve(({ rateLimit, onLimited }) => ({
          app: [
            rateLimit({
              store,
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
        for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate)
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
        const server = await serveLimited(
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

    describe('refundWhen', () => {
      const failed = (_request: unknown, response: { status?: unknown; statusCode?: unknown }): boolean =>
        Number(response.statusCode ?? response.status) >= 400
      const succeeded = (...args: Parameters<typeof failed>): boolean => !failed(...args)

      test('gives back what a response was charged; refusals neither charge nor give back B132', async () => {
        const statuses = [400, 400, 400]
        const server = await serveLimited(
          { limit: 3, refundWhen: failed },
          { handler: () => statuses.shift() },
        )
        expect(await sendTimes(server, 8)).toEqual([400, 400, 400, 200, 200, 200, 429, 429])
      })

      test('charges first, so that parallel requests cannot slip through B134', async () => {
        let guesses = 0
        let open: (() => void) | undefined
        const outcomeKnown = new Promise<void>((resolve) => {
          open = resolve
        })
        const server = await serveLimited(
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
        const limiter = new Limiter({ store, name: 'cut', ...window, limit: 3 })
        let closed: Promise<unknown> | undefined
        let request: http.ClientRequest | undefined
        const server = await serve(({ rateLimit }) => ({
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
        for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate)
        expect(server.handled).toHaveLength(1)
        expect(await limiter.peek({ key: 'ip:127.0.0.1', cost: 0 })).toMatchObject({ remaining: 2 })
      })

      test('may be async', async () => {
        const server = await serveLimited({ limit: 1, refundWhen: async () => true })
        expect(await sendTimes(server, 3)).toEqual([200, 200, 200])
      })

      test('that throws is warned of, and the reply stands', async () => {
        const { lines, logger } = recordingLogger()
        const refundWhen = (): never => {
          throw new Error('no idea')
        }
        const server = await serveLimited({ limit: 3, logger, refundWhen })
        expect(await sendTimes(server, 2)).toEqual([200, 200])
        expect(lines).toEqual([expect.stringMatching(/refundWhen.*no idea.*SLUICE_REQUEST_FUNCTION/)])
        expect(server.errors).toEqual([])
      })

      test('on a store that fails by then is told of once, and the reply stands B119', async () => {
        const events: SluiceEvent[] = []
        const failing = Object.assign(Object.create(store) as MemoryStore, {
          consume: (...args: Parameters<Store['consume']>) => store.consume(...args),
          refund: () => Promise.reject(new Error('down')),
        })
        const server = await serveLimited({
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

    describe('a leaky bucket', () => {
      test('lets accepted requests wait for their departures and run in their order, and denies the others', async () => {
        const policy = { algorithm: 'leaky-bucket', limit: 20, window: '1s', queue: 2 }
        const server = await serveLimited(policy)
        const answers = await Promise.all(Array.from({ length: 4 }, () => send(server)))
        expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 429])
        expect(server.handled.map((decision) => decision?.delayMs)).toEqual([0, 50, 100])
        const denied = answers.find(({ status }) => status === 429)
        expect(denied?.headers).toMatchObject({
          'ratelimit-policy': '"20-per-1s";q=3;w=1',
          'retry-after': '1',
        })
      })

      test('does not run the handler of a client that left, and gives its place back if it is the last', async () => {
        const policy = { algorithm: 'leaky-bucket', limit: 1, window: '10s', queue: 1 } as const
        const limiter = new Limiter({ store, name: 'queue', ...policy })
        const closed: Promise<unknown>[] = []
        const server = await serve(({ rateLimit }) => ({
          app: [rateLimit({ limiter })],
          before: (response) => {
            closed.push(once(response, 'close'))
          },
        }))
        const places = async () => (await limiter.peek({ key: 'ip:127.0.0.1', cost: 0 })).remaining
        await send(server)
        const request = http.get({ host: '127.0.0.1', port: server.port, path: contractPath, agent: false })
        request.on('error', () => {})
        while ((await places()) > 0) await new Promise(setImmediate)
        request.destroy()
        await closed[1]
        while ((await places()) === 0) await new Promise(setImmediate)
        expect(await places()).toBe(1)
        expect(server.handled).toHaveLength(1)
        expect(server.errors).toEqual([])
      })

      test('does not run handlers for pipelined requests whose client left', async () => {
        const policy = { algorithm: 'leaky-bucket', limit: 10, window: '1s', queue: 9 }
        const server = await serveLimited(policy)
        const socket = net.connect(server.port, '127.0.0.1')
        socket.on('error', () => {})
        const request = `GET ${contractPath} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`
        socket.write(request.repeat(4))
        await once(socket, 'data')
        socket.destroy()
        expect(await sendTimes(server, 1)).toEqual([200])
        expect(server.handled.map((decision) => decision?.delayMs)).toEqual([0, 400])
      })

      test('whose queue is longer than clients wait is warned of', async () => {
        const { lines, logger } = recordingLogger()
        await serveLimited({ algorithm: 'leaky-bucket', limit: 1, window: '1m', queue: 2, logger })
        expect(lines).toEqual([expect.stringMatching(/wait 2m .*SLUICE_LONG_QUEUE/)])
      })
    })

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
        const server = await serveLimited({ store: down(), limit: 1, headers: headerSets })
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
        const server = await serveLimited({ store: broken(), limit: 1, ...options })
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
        const server = await serve(({ rateLimit }) => ({
          app: [rateLimit({ store, name: 'app', limit: 5, ...window, headers })],
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
          const late: Store = Object.create(store, {
            shared: { value: true },
            consume: {
              value: async (checks: readonly Check[]) => {
                await delay(50)
                return store.consume(checks)
              },
            },
          })
          const server = await serve(({ rateLimit }) => ({
            [place]: [rateLimit({ ...window, store: late, limit: 1, timeoutMs: 10_000 })],
          }))
          expect(await sendTimes(server, 2)).toEqual([200, 429])
          expect(server.handled).toHaveLength(1)
        },
      )
    })

    test('a limiter made elsewhere can be given', async () => {
      const limiter = new Limiter({ store, name: 'api', limit: 2, ...window })
      const server = await serve(({ rateLimit }) => ({ app: [rateLimit({ limiter, cost: 2 })] }))
      expect(await sendTimes(server, 2)).toEqual([200, 429])
      expect(await limiter.peek({ key: 'ip:127.0.0.1' })).toMatchObject({ remaining: 0 })
    })

    test('a mistake in the options is an error at once', async () => {
      await expect(serveLimited({ limit: 1, limt: 2 })).rejects.toMatchObject({
        code: 'SLUICE_UNKNOWN_OPTION',
      })
    })
  })
}

interface RequestOptions {
  readonly method?: string
  readonly headers?: Record<string, string>
}

function send({ port }: TestServer, { method = 'GET', headers = {} }: RequestOptions = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path: contractPath, method, headers, agent: false }
    const request = http.request(options, (response) => {
      let body = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        body += chunk
      })
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, body }))
      response.on('error', reject)
    })
    request.on('error', reject)
    request.end()
  })
}

async function sendTimes(server: TestServer, times: number): Promise<unknown[]> {
  const statuses: unknown[] = []
  for (let i = 0; i < times; i++) statuses.push((await send(server)).status)
  return statuses
}

/** A logger that keeps its lines. */
function recordingLogger(): { readonly lines: string[]; readonly logger: Logger } {
  const lines: string[] = []
  return { lines, logger: { warn: (line) => lines.push(line) } }
}

/** The headers that a limiter may write, without those that describe a body. */
function limiterHeaders({ headers }: Answer): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => /^(x-)?ratelimit|^retry-after$|^cache-control$/.test(name)),
  )
}
