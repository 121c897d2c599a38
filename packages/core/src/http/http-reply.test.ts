import { Limiter } from '../limiter.js'
import { MemoryStore } from '../memory-store.js'
import { HttpLimiter } from './http-limiter.js'
import { type HttpReplyOptions, httpReply } from './http-reply.js'

const limiterOf = () =>
  new Limiter({
    store: new MemoryStore({ nowUs: () => 0 }),
    logger: { warn: () => {} },
    blocks: true,
    policies: [
      { name: 'burst', limit: 1, window: '1s', algorithm: 'fixed-window' },
      { name: 'daily', limit: 9, window: '1d', algorithm: 'fixed-window' },
    ],
  })

/** What a middleware writes of the last of some requests. */
async function written(requests: number, { accept, ...options }: HttpReplyOptions) {
  const http = new HttpLimiter({ limiter: limiterOf(), key: () => 'k', ...options })
  let headers: Record<string, string> = {}
  let refusal: { status: number; contentType: string; body: string } | undefined
  for (let i = 0; i < requests; i += 1) {
    headers = {}
    const identity = {}
    const outcome = await http.handle({
      request: identity,
      response: {},
      identity,
      method: 'GET',
      ip: '203.0.113.5',
      trustsEveryProxy: false,
      trustsNoProxy: true,
      gone: false,
      headersSent: false,
      header: (name) => (name === 'accept' ? accept : undefined),
      responseHeader: (name) => headers[name],
      setResponseHeader: (name, value) => {
        headers[name] = value
      },
      onEnd: () => {},
    })
    refusal = outcome.refusal
  }
  const length = refusal && String(Buffer.byteLength(refusal.body))
  return {
    status: refusal?.status,
    headers: refusal
      ? { ...headers, 'Content-Type': refusal.contentType, 'Content-Length': length }
      : headers,
    body: refusal?.body ?? '',
  }
}

const sets = ['draft-8', 'draft-7', 'draft-6', 'legacy'] as const
test.each<[string, HttpReplyOptions]>([
  ['by default', {}],
  ['without quota headers', { headers: false }],
  ['in all sets', { headers: sets, legacyReset: 'delta' }],
  ['as text for a client that takes no JSON', { accept: 'text/html' }],
  ['with a message and a status', { message: { wörtlich: true }, statusCode: 420 }],
])('httpReply writes what a middleware does, allowed and denied: %s', async (_, options) => {
  for (const requests of [1, 2]) {
    const limiter = limiterOf()
    if (requests === 2) await limiter.consume({ key: 'k' })
    const decision = await limiter.consume({ key: 'k' })
    expect(decision.allowed).toBe(requests === 1)
    expect(httpReply(decision, options)).toEqual(await written(requests, options))
  }
})

test('httpReply of a denial has Retry-After and a body that is not to be stored', async () => {
  const limiter = limiterOf()
  await limiter.block('k', '10s')
  const { status, headers, body } = httpReply(await limiter.consume({ key: 'k' }))
  expect(status).toBe(429)
  expect(headers).toMatchObject({
    'Retry-After': '10',
    'Cache-Control': 'no-store',
    'Content-Type': 'application/problem+json',
    'Content-Length': String(body.length),
  })
})

test.each<[string, object, string]>([
  ['a status that refuses nothing', { statusCode: 200 }, 'statusCode'],
  ['another header set', { headers: 'draft-9' }, 'headers'],
  ['a misspelt option', { header: false }, 'header'],
])('httpReply does not take %s', async (_, options, option) => {
  const decision = await limiterOf().consume({ key: 'k' })
  expect(() => httpReply(decision, options as HttpReplyOptions)).toThrow(`\`${option}\``)
})

test.each([undefined, null, {}, Promise.resolve()])('httpReply takes a decision, and not %p', (decision) => {
  expect(() => httpReply(decision as never)).toThrow(
    expect.objectContaining({ code: 'SLUICE_BAD_OPTION', message: expect.stringContaining('`decision`') }),
  )
})
