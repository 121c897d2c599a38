import type { Decision, Store } from '@sluice/core'
import { type Answer, limiterLines, type RequestOptions, send } from './http-client.js'
import { sendHttp2 } from './http2-client.js'
import type { AdapterTools, Protocol, Site } from './site.js'
import { headerSets, type Sites, window } from './sites.js'

/** What comes back for the second of two requests, 20.5 s after the first. */
interface Expected {
  readonly request?: RequestOptions
  readonly status: string
  /** All that the limiter writes, sorted, but for `Content-Type` and `Content-Length`. */
  readonly lines: readonly string[]
  /** Of a body that the limiter writes. */
  readonly type?: string
  readonly body: string
}

type Row = [what: string, site: (tools: AdapterTools) => Site, expected: Expected]

const tooMany = '429 Too Many Requests'
const problem = 'application/problem+json'
const text = 'text/plain; charset=utf-8'

function quotaExceeded(detail: string, policy: string): string {
  const type = 'https://iana.org/assignments/http-problem-types#quota-exceeded'
  return `{"type":"${type}","title":"Quota exceeded","status":429,"detail":"${detail}","violated-policies":["${policy}"]}`
}

/** What the default headers say of 1 request a minute that is used up, with 39.5 s to go. */
const usedUp = [
  'cache-control: no-store',
  'ratelimit-limit: 1',
  'ratelimit-policy: "1-per-1m";q=1;w=60',
  'ratelimit-remaining: 0',
  'ratelimit-reset: 40',
  'ratelimit: "1-per-1m";r=0;t=40',
  'retry-after: 40',
]

/** A site of which one request a minute is served. */
function one(options: object = {}): (tools: AdapterTools) => Site {
  return ({ rateLimit }) => ({ app: [rateLimit({ ...window, limit: 1, ...options })] })
}

const failing = (): Promise<never> => Promise.reject(new Error('connection lost'))
const down = (): Store => ({
  shared: true,
  consume: failing,
  peek: failing,
  refund: failing,
  reset: failing,
  close: async () => {},
})

const rows: Row[] = [
  [
    'allowed',
    one({ limit: 3 }),
    {
      status: '200 OK',
      lines: [
        'ratelimit-limit: 3',
        'ratelimit-policy: "3-per-1m";q=3;w=60',
        'ratelimit-remaining: 1',
        'ratelimit-reset: 40',
        'ratelimit: "3-per-1m";r=1;t=40',
      ],
      body: 'ok',
    },
  ],
  [
    'denied',
    one(),
    {
      status: tooMany,
      lines: usedUp,
      type: problem,
      body: quotaExceeded('Try again in 40 seconds.', '1-per-1m'),
    },
  ],
  [
    'denied, without JSON for who accepts none',
    one(),
    {
      request: { headers: { accept: 'text/html' } },
      status: tooMany,
      lines: usedUp,
      type: text,
      body: 'Quota exceeded. Try again in 40 seconds.\n',
    },
  ],
  [
    'denied with a text of the user',
    one({ message: 'Später wieder' }),
    { status: tooMany, lines: usedUp, type: text, body: 'Später wieder' },
  ],
  [
    'denied with an object of the user',
    one({ message: { error: 'später' } }),
    { status: tooMany, lines: usedUp, type: 'application/json; charset=utf-8', body: '{"error":"später"}' },
  ],
  [
    'denied with another status',
    one({ message: 'no', statusCode: 403 }),
    { status: '403 Forbidden', lines: usedUp, type: text, body: 'no' },
  ],
  [
    'denied with a reply of the user',
    ({ rateLimit, onLimited }) => ({
      app: [
        rateLimit({
          ...window,
          limit: 1,
          onLimited: onLimited(async ({ reason }: Decision) => ({ status: 503, body: reason })),
        }),
      ],
    }),
    { status: '503 Service Unavailable', lines: usedUp, body: 'quota' },
  ],
  [
    'denied by one of several policies',
    ({ rateLimit }) => ({
      app: [
        rateLimit({
          policies: [
            { ...window, name: 'burst', limit: 1 },
            { ...window, name: 'daily', limit: 10, window: '1d' },
          ],
        }),
      ],
    }),
    {
      status: tooMany,
      lines: [
        'cache-control: no-store',
        'ratelimit-limit: 1',
        'ratelimit-policy: "burst";q=1;w=60, "daily";q=10;w=86400',
        'ratelimit-remaining: 0',
        'ratelimit-reset: 40',
        'ratelimit: "burst";r=0;t=40, "daily";r=9;t=86380',
        'retry-after: 40',
      ],
      type: problem,
      body: quotaExceeded('Try again in 40 seconds.', 'burst'),
    },
  ],
  [
    'denied by the inner one of several limiters, in all sets of headers',
    ({ rateLimit }) => ({
      app: [rateLimit({ ...window, name: 'outer', limit: 5, window: '1h', headers: headerSets })],
      route: [rateLimit({ ...window, name: 'inner', limit: 1, headers: headerSets })],
    }),
    {
      status: tooMany,
      lines: [
        'cache-control: no-store',
        'ratelimit-limit: 1',
        'ratelimit-policy: "outer";q=5;w=3600, "inner";q=1;w=60',
        'ratelimit-remaining: 0',
        'ratelimit-reset: 40',
        'ratelimit: "outer";r=3;t=3580, "inner";r=0;t=40',
        'retry-after: 40',
        'x-ratelimit-limit: 1',
        'x-ratelimit-remaining: 0',
        'x-ratelimit-reset: 1728000060',
      ],
      type: problem,
      body: quotaExceeded('Try again in 40 seconds.', 'inner'),
    },
  ],
  [
    'denied for a cost that never passes',
    one({ cost: 2 }),
    {
      status: tooMany,
      lines: [
        'cache-control: no-store',
        'ratelimit-limit: 1',
        'ratelimit-policy: "1-per-1m";q=1;w=60',
        'ratelimit-remaining: 1',
        'ratelimit-reset: 0',
        'ratelimit: "1-per-1m";r=1',
      ],
      type: problem,
      body: quotaExceeded('The request costs more than the limit can ever admit.', '1-per-1m'),
    },
  ],
  ['skipped', one({ skip: () => true }), { status: '200 OK', lines: [], body: 'ok' }],
  [
    'denied for want of a store',
    (tools) => one({ store: down(), onStoreError: 'deny' })(tools),
    {
      status: '503 Service Unavailable',
      lines: ['cache-control: no-store', 'retry-after: 1'],
      type: problem,
      body:
        '{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",' +
        '"title":"Temporarily reduced capacity","status":503,' +
        '"detail":"The request could not be counted. Try again shortly."}',
    },
  ],
]

const senders = { http1: send, http2: sendHttp2 }

const requests = rows.flatMap((row) => (['GET', 'HEAD'] as const).map((method) => [method, ...row] as const))

export function bytesTests(sites: Sites, protocol: Protocol): void {
  const sendIt = senders[protocol]

  describe(`what the limiter writes, over ${protocol}`, () => {
    test.each(requests)('%s %s: every byte is as it must be B50', async (method, _, site, expected) => {
      const { request, status, lines, type, body } = expected
      const server = await sites.serve(site, protocol)
      await sendIt(server)
      sites.nowUs += 20.5e6
      const answer = await sendIt(server, { ...request, method })
      const described = [`content-length: ${Buffer.byteLength(body)}`, `content-type: ${type}`]
      expect(statusOf(answer)).toBe(protocol === 'http1' ? status : status.slice(0, 3))
      expect(type ? ownLines(answer) : limiterLines(answer)).toEqual(
        [...lines, ...(type ? described : [])].sort(),
      )
      expect(answer.body).toBe(method === 'GET' ? body : '')
      expect(server.handled.length === 2).toBe(status === '200 OK')
      expect(server.errors).toEqual([])
    })
  })
}

function statusOf({ status, statusText }: Answer): string {
  return statusText === undefined ? String(status) : `${status} ${statusText}`
}

/** All lines but those that Node.js writes about the connection and the time. */
function ownLines({ lines }: Answer): string[] {
  return lines.filter((line) => !/^(date|connection|keep-alive): /.test(line)).sort()
}
