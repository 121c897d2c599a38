import { Limiter } from '../limiter.js'
import { MemoryStore } from '../memory-store.js'
import type { Extractor, RequestContext } from './exchange.js'
import { byApiKey, byHeader, byIp, byPlan, byUser, compose, ipKey, planByApiKey } from './extractors.js'

function context(
  { ip, plan }: { ip?: string | undefined; plan?: string } = {},
  headers: Record<string, string> = {},
): RequestContext {
  return { ip, plan, header: (name) => headers[name] }
}

const constant =
  (value: string | undefined): Extractor =>
  () =>
    value

describe('byIp', () => {
  test.each([
    ['IPv4', '203.0.113.5', 'ip:203.0.113.5'],
    ['IPv6 by /64', '2001:db8:1:2::9', 'ip:2001:db8:1:2::/64'],
    ['no address', undefined, undefined],
  ])('%s', (_, ip, key) => {
    expect(byIp()({}, context({ ip }))).toBe(key)
  })

  test('gives an address the same key however many others came in between', () => {
    const extractor = byIp()
    const texts = Array.from({ length: 1000 }, (_, i) => `::ffff:10.0.${i >> 8}.${i & 255}`)
    texts.push('9'.repeat(100))
    const keys = [...texts, ...texts].map((ip) => extractor({}, context({ ip })))
    expect(keys).toEqual([...texts, ...texts].map((ip) => byIp.of(ip)))
  })

  test('takes another subnet', () => {
    expect(byIp({ ipv6Subnet: 48 })({}, context({ ip: '2001:db8:1:2::9' }))).toBe('ip:2001:db8:1::/48')
  })

  test('of() makes the same, for the methods of a limiter', () => {
    expect(byIp.of('::ffff:203.0.113.5')).toBe('ip:203.0.113.5')
    expect(byIp.of('2001:db8:1:2::9')).toBe('ip:2001:db8:1:2::/64')
    expect(byIp.of('2001:db8:1:2::9', { ipv6Subnet: 48 })).toBe('ip:2001:db8:1::/48')
    expect(byIp.of(undefined)).toBe(ipKey(undefined))
    expect(() => byIp.of('::1', { ipv6Subnet: 0 })).toThrow(
      expect.objectContaining({ code: 'SLUICE_BAD_OPTION' }),
    )
  })

  test.each([0, 129, 64.5, Number.NaN, '64'])('refuses the subnet %p', (ipv6Subnet) => {
    expect(() => byIp({ ipv6Subnet: ipv6Subnet as number })).toThrow(
      expect.objectContaining({ code: 'SLUICE_BAD_OPTION', message: expect.stringContaining('1 to 128') }),
    )
  })
})

test.each(['unknown', 'undefined', 'none', ' '])(
  'no address has a key that the text %p cannot have B16',
  (text) => {
    expect(ipKey(text)).not.toBe(ipKey(undefined))
  },
)

describe('byHeader', () => {
  test('tags the value with the header, by its lower-case name', () => {
    expect(byHeader('X-Tenant')({}, context({}, { 'x-tenant': 'acme' }))).toBe('header:x-tenant:acme')
  })

  test('finds nothing in an absent or empty header, and looks at no other B11', () => {
    const others = { 'x-tenant': '', 'true-client-ip': '1.1.1.1', 'x-real-ip': '2.2.2.2' }
    expect(byHeader('x-tenant')({}, context({}, others))).toBeUndefined()
  })

  test.each(['', 'two words', 'a:b', 'ä', undefined, 7])('refuses the name %p', (name) => {
    expect(() => byHeader(name as string)).toThrow(expect.objectContaining({ code: 'SLUICE_BAD_OPTION' }))
  })
})

describe('byApiKey', () => {
  const key = byApiKey('X-API-Key')({}, context({}, { 'x-api-key': 'secret' }))

  test('shows the SHA-256 of the key, never the key', () => {
    expect(key).toBe('key:K7gNU3sdo-OL0wNhqoVWhr3g6s1xYv72ol_pe_Unols')
  })

  test('of() makes the same, for the methods of a limiter', () => {
    expect(byApiKey.of('secret')).toBe(key)
  })

  test('finds nothing in an absent or empty header', () => {
    expect(byApiKey('x-api-key')({}, context())).toBeUndefined()
    expect(byApiKey('x-api-key')({}, context({}, { 'x-api-key': '' }))).toBeUndefined()
  })
})

test.each([
  ['text', 'u-1', 'user:u-1'],
  ['a number', 42, 'user:42'],
  ['zero', 0, 'user:0'],
  ['a promise', Promise.resolve('u-2'), 'user:u-2'],
  ['undefined', undefined, undefined],
  ['null', null, undefined],
  ['empty text', '', undefined],
])('byUser: %s', async (_, id, key) => {
  expect(await byUser(() => id)({}, context())).toBe(key)
})

test.each([
  ['pro', 'plan:pro'],
  [undefined, undefined],
])('byPlan of %p is %p', (plan, key) => {
  expect(byPlan()({}, context(plan === undefined ? {} : { plan }))).toBe(key)
})

describe('compose', () => {
  test('fails once where one part rejects and another throws B55', async () => {
    const unheard = jest.fn()
    process.on('unhandledRejection', unheard)
    const rejects = (): Promise<string> => Promise.reject(new Error('rejected'))
    const throws = (): string => {
      throw new Error('thrown')
    }
    await expect(compose(rejects, throws)({}, context())).rejects.toThrow('rejected')
    await new Promise((resolve) => setImmediate(resolve))
    process.off('unhandledRejection', unheard)
    expect(unheard).not.toHaveBeenCalled()
  })

  test('answers in the same turn where all parts do', () => {
    expect(
      compose(
        byIp(),
        byUser(() => 7),
      )({}, context({ ip: '1.2.3.4' })),
    ).toBe('ip:1.2.3.4|user:7')
  })

  const keyOf = (...parts: (string | undefined)[]) =>
    compose(...parts.map(constant))({}, context({ ip: '1.2.3.4' }))

  test('never makes one key of different parts B14', async () => {
    const tuples = [
      ['2', '11'],
      ['21', '1'],
      ['a:b', 'c'],
      ['a', 'b:c'],
      ['a', ''],
      ['a'],
      ['', 'a'],
      ['a|b'],
      ['a', 'b'],
      ['a%7Cb'],
      ['a%7cb'],
    ]
    const keys = await Promise.all(tuples.map((tuple) => keyOf(...tuple)))
    expect(new Set(keys).size).toBe(tuples.length)
  })

  test('leaves the readable parts readable', async () => {
    expect(await keyOf('ip:1.2.3.4', 'user:7')).toBe('ip:1.2.3.4|user:7')
  })

  test('puts the address in the place of a part that finds nothing', async () => {
    expect(await keyOf('user:7', undefined)).toBe('user:7|ip:1.2.3.4')
  })

  test.each([[[]], [['ip']]])('refuses %j', (extractors) => {
    expect(() => compose(...(extractors as unknown as Extractor[]))).toThrow(
      expect.objectContaining({ code: 'SLUICE_BAD_OPTION' }),
    )
  })
})

describe('planByApiKey', () => {
  const table = { 'k-1': 'pro' }
  test.each([
    ['an object', table],
    ['a Map', new Map(Object.entries(table))],
    ['a function', (apiKey: string) => Promise.resolve(apiKey === 'k-1' ? 'pro' : undefined)],
  ])('looks up in %s', async (_, lookup) => {
    const planOf = (apiKey: string) => planByApiKey(lookup)({}, context({}, { 'x-api-key': apiKey }))
    expect(await planOf('k-1')).toBe('pro')
    expect(await planOf('k-2')).toBeUndefined()
    expect(await planOf('__proto__')).toBeUndefined()
    expect(await planOf('constructor')).toBeUndefined()
  })

  test('finds nothing without a key, and does not ask', () => {
    const lookup = jest.fn()
    expect(planByApiKey(lookup)({}, context())).toBeUndefined()
    expect(lookup).not.toHaveBeenCalled()
  })

  test('reads another header', () => {
    expect(planByApiKey(table, { header: 'X-Key' })({}, context({}, { 'x-key': 'k-1' }))).toBe('pro')
  })

  test.each([undefined, null, 'pro'])('refuses to look up in %p', (lookup) => {
    expect(() => planByApiKey(lookup as never)).toThrow(
      expect.objectContaining({ code: 'SLUICE_BAD_OPTION' }),
    )
  })
})

test('no key is reserved: each is counted for itself, in a store that is full B16', async () => {
  const keys = ['__overflow__', 'default', 'global', 'unknown', '*', '', 'ip:', '__proto__', '%']
  const store = new MemoryStore({ maxKeys: keys.length, nowUs: () => 0 })
  const limiter = new Limiter({ store, limit: 2, window: '1m' })
  for (const key of keys) {
    const allowed: boolean[] = []
    for (let i = 0; i < 3; i++) allowed.push((await limiter.consume({ key })).allowed)
    expect([key, ...allowed]).toEqual([key, true, true, false])
  }
})
