import { startWorkerd } from '../../test/workerd.js'
import { decisionOf } from '../index.js'
import { type RateLimitBindingOptions, withRateLimitBinding } from './rate-limit-binding.js'
import { wranglerConfig } from './wrangler-config.js'

const policy = { name: 'login', limit: 5, window: '15m' } as const
const ok = (): Response => new Response('ok')

/** A binding that admits so many requests of a key. */
function binding(limit: number) {
  const counts = new Map<string, number>()
  return {
    counts,
    async limit({ key }: { key: string }) {
      const count = (counts.get(key) ?? 0) + 1
      counts.set(key, count)
      return { success: count <= limit }
    },
  }
}

const options = (changes: object = {}): RateLimitBindingOptions => ({
  binding: binding(1),
  policy,
  address: () => '10.1.2.3',
  logger: { warn: () => {} },
  ...changes,
})
const ask = (headers: Record<string, string> = {}) => new Request('https://a.example/', { headers })

describe('withRateLimitBinding', () => {
  test('refuses what the binding refuses, as long as its period may be, and tells no numbers', async () => {
    const limited = withRateLimitBinding(ok, options())
    const served = await limited(ask())
    expect([served.status, ...served.headers.keys()]).toEqual([200, 'content-type'])
    const denied = await limited(ask())
    expect(denied.status).toBe(429)
    expect(Object.fromEntries(denied.headers)).toMatchObject({
      'retry-after': '60',
      'cache-control': 'no-store',
    })
    expect([...denied.headers.keys()].filter((name) => name.startsWith('ratelimit'))).toEqual([])
    expect(await denied.json()).toMatchObject({ 'violated-policies': ['login-coarse'] })
  })

  test('asks the binding by the key of each client', async () => {
    const native = binding(1)
    const key = (request: Request) => `${request.headers.get('x-id')}`
    const limited = withRateLimitBinding(ok, options({ binding: native, key }))
    const statuses: number[] = []
    for (const id of ['a', 'b', 'a']) statuses.push((await limited(ask({ 'x-id': id }))).status)
    expect(statuses).toEqual([200, 200, 429])
    expect(native.counts.size).toBe(2)
  })

  test('takes a binding that fails for a store that does', async () => {
    const failing = { limit: () => Promise.reject(new Error('internal error')) }
    const request = ask()
    expect((await withRateLimitBinding(ok, options({ binding: failing }))(request)).status).toBe(200)
    expect(decisionOf(request)).toMatchObject({ reason: 'store-error', degraded: true })
    const strict = withRateLimitBinding(ok, options({ binding: failing, onStoreError: 'deny' }))
    expect((await strict(ask())).status).toBe(503)
  })

  test('says once what a binding cannot express of the policy', () => {
    const warn = jest.fn()
    withRateLimitBinding(ok, options({ logger: { warn } }))
    expect(warn.mock.calls).toEqual([[expect.stringContaining('(SLUICE_CLOUDFLARE_BINDING)')]])
    for (const said of [
      '6 in 60 s',
      'each location',
      'with a delay',
      'whatever its cost',
      'no quota headers',
    ]) {
      expect(warn).toHaveBeenCalledWith(expect.stringContaining(said))
    }
  })

  test('cannot peek, give back or forget, and says so', async () => {
    const { limiter } = withRateLimitBinding(ok, options())
    await expect(limiter.reset('ip:10.1.2.3')).rejects.toMatchObject({ code: 'SLUICE_CLOUDFLARE_BINDING' })
    expect(await limiter.peek({ key: 'a' })).toMatchObject({ reason: 'store-error' })
    const decision = await limiter.consume({ key: 'a' })
    await expect(limiter.refund(decision)).rejects.toMatchObject({ code: 'SLUICE_CLOUDFLARE_BINDING' })
  })

  test.each<[what: string, changes: object, option: string]>([
    ['a binding that is none', { binding: {} }, 'binding'],
    ['a policy that only looks', { policy: { ...policy, shadow: true } }, 'shadow'],
    ['a policy that refuses everything', { policy: { ...policy, limit: 0 } }, 'limit'],
    ['a cost', { cost: 2 }, 'cost'],
    ['plans', { plans: {} }, 'plans'],
    ['a refund', { refundWhen: () => true }, 'refundWhen'],
  ])('refuses %s', (_, changes, option) => {
    expect(() => withRateLimitBinding(ok, options(changes))).toThrow(
      expect.objectContaining({ name: 'SluiceError', path: [option] }),
    )
  })

  test('in workerd stands before an exact limiter, which refuses first what one client sends', async () => {
    const workerd = await startWorkerd('binding-worker.js', {
      ratelimits: { API: { namespace_id: '1001', simple: { limit: 4, period: 60 } } },
    })
    try {
      const from = async (client: string) => {
        const { status, headers } = await fetch(workerd.url, { headers: { client } })
        return [status, headers.get('ratelimit-policy')]
      }
      const policy = '"api";q=2;w=60'
      const answers: unknown[] = []
      for (let i = 0; i < 6; i++) answers.push(await from('10.1.2.3'))
      expect(answers).toEqual([
        [200, policy],
        [200, policy],
        [429, policy],
        [429, policy],
        [429, null],
        [429, null],
      ])
      expect(await from('10.9.9.9')).toEqual([200, policy])
    } finally {
      await workerd.stop()
    }
  })
})

describe('wranglerConfig', () => {
  const bindingsOf = (config: string): unknown[] =>
    JSON.parse(config.replace(/^ *\/\/.*$/gm, '').replace(/,(\s*[\]}])/g, '$1')).ratelimits

  test.each<[policy: object, limit: number, period: number]>([
    [{ limit: 5, window: '15m' }, 6, 60],
    [{ limit: 100, window: '1m' }, 200, 60],
    [{ limit: 50, window: '1s' }, 550, 10],
    [{ limit: 100, window: '1m', algorithm: 'gcra', burst: 20 }, 120, 60],
    [{ limit: 100_000, window: '1d' }, 100_070, 60],
  ])('never refuses what the policy admits: %j gets %d in %d s', (policy, limit, period) => {
    const config = wranglerConfig([{ name: 'api', ...policy } as never])
    expect(bindingsOf(config)).toEqual([{ name: 'API', namespace_id: '1001', simple: { limit, period } }])
  })

  test('is JSON with comments that tell the differences, and has the objects', () => {
    const config = wranglerConfig([policy, { ...policy, name: '5 a day!' }], { namespaceId: 7 })
    expect(bindingsOf(config)).toMatchObject([
      { name: 'LOGIN', namespace_id: '7' },
      { name: 'LIMIT_5_A_DAY_', namespace_id: '8' },
    ])
    expect(config).toContain('// each location of Cloudflare counts by itself')
    expect(config).toContain('"new_sqlite_classes": ["RateLimitObject"]')
  })

  test.each<[what: string, args: unknown[], option: string]>([
    ['no policies', [undefined], 'policies'],
    ['two policies of one name', [[policy, policy]], 'name'],
    ['a policy that is none', [[{ limit: 1 }]], 'window'],
    ['a number that is none', [[policy], { namespaceId: 0 }], 'namespaceId'],
  ])('refuses %s', (_, args, option) => {
    expect(() => wranglerConfig(...(args as Parameters<typeof wranglerConfig>))).toThrow(
      expect.objectContaining({ name: 'SluiceError', path: [option] }),
    )
  })
})
