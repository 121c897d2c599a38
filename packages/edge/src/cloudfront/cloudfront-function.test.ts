import { spawnSync } from 'node:child_process'
import * as crypto from 'node:crypto'
import vm from 'node:vm'
import { byApiKey, byIp, type Decision, httpReply } from '@sluice/core'
import fc from 'fast-check'
import { secret, World } from '../../test/feed-world.js'
import { readFeed } from '../feed/index.js'
import { type CloudFrontFunctionOptions, cloudFrontFunction, keyValueChanges } from './index.js'

const logger = { warn() {} }
const api = { name: 'api', algorithm: 'fixed-window', limit: 2, window: '1m', logger } as const

interface FunctionEvent {
  readonly viewer: { readonly ip: string }
  readonly request: { readonly method: string; readonly headers: Record<string, { value: string }> }
}

interface FunctionResponse {
  readonly statusCode: number
  readonly headers: Record<string, { value: string }>
  readonly body: { readonly encoding: string; readonly data: string }
}

/** Loads a function as the runtime does, with a KeyValueStore that tells its errors. */
function load(options: CloudFrontFunctionOptions, store: ReadonlyMap<string, string>, nowMs = 0) {
  const { code } = cloudFrontFunction(options)
  const asked: string[] = []
  const get = async (key: string): Promise<string> => {
    asked.push(key)
    const value = store.get(key)
    if (value === undefined) throw new Error('KeyNotFound')
    return value
  }
  const modules = { cloudfront: { kvs: () => ({ get }) }, crypto }
  const script = code.replace(/^import (\w+) from '(\w+)'$/gm, 'const $1 = modules.$2')
  const context = vm.createContext({ modules, Date: { now: () => nowMs } })
  const handler = vm.runInContext(`'use strict'\n${script}\nhandler`, context)
  const handle = async (event: FunctionEvent): Promise<FunctionEvent['request'] | FunctionResponse> => {
    // What the runtime gets out of the context, as data.
    const answer = await handler(event)
    return answer === event.request ? answer : structuredClone(answer)
  }
  return { handle, asked }
}

function eventOf(changes: Partial<FunctionEvent['request']> = {}, ip = '203.0.113.178'): FunctionEvent {
  const headers = { host: { value: 'd111111abcdef8.cloudfront.net' }, ...changes.headers }
  return { viewer: { ip }, request: { method: 'GET', ...changes, headers } }
}

/** A store that holds what the feed of an origin lists. */
async function storeOf(world: World): Promise<Map<string, string>> {
  const changes = keyValueChanges(await readFeed(await world.publisher.feed(), { one: secret }))
  return new Map(changes.flatMap(({ Puts }) => Puts.map(({ Key, Value }): [string, string] => [Key, Value])))
}

describe('the function', () => {
  test('refuses a key that the store holds with the reply of any adapter, and passes others on', async () => {
    const world = new World(api)
    await world.exhaust('ip:203.0.113.178')
    const denial = await world.origin.consume({ key: 'ip:203.0.113.178' })
    const { handle } = load(api, await storeOf(world), world.originMs)
    const response = (await handle(eventOf())) as FunctionResponse
    const { headers, body, status } = httpReply(denial)
    const { 'Content-Length': _, ...sent } = headers
    expect(response).toEqual({
      statusCode: status,
      statusDescription: 'Too Many Requests',
      headers: Object.fromEntries(
        Object.entries(sent).map(([name, value]) => [name.toLowerCase(), { value }]),
      ),
      body: { encoding: 'text', data: body },
    })
    const other = eventOf({}, '203.0.113.179')
    expect(await handle(other)).toBe(other.request)
  })

  test('tells of all policies that deny, whatever their names', async () => {
    const policies = [
      {
        name: 'a "quoted" \\ name',
        algorithm: 'fixed-window',
        align: 'first-request',
        limit: 2,
        window: '1h',
      },
      { name: 'bucket', algorithm: 'token-bucket', limit: 2, window: '1d', burst: 1 },
    ] as const
    const world = new World({
      limit: undefined,
      window: undefined,
      algorithm: undefined,
      align: undefined,
      policies,
    } as never)
    await world.exhaust('ip:203.0.113.178')
    const { handle } = load({ policies, logger }, await storeOf(world), world.originMs)
    await world.feed.poll()
    const expected = httpReply(world.feed.check('ip:203.0.113.178') as Decision)
    const { headers, body } = (await handle(eventOf())) as FunctionResponse
    expect(headers['ratelimit-policy']?.value).toBe(expected.headers['RateLimit-Policy'])
    expect(headers.ratelimit?.value).toBe(expected.headers.RateLimit)
    expect(body.data).toBe(expected.body)
  })

  test('refuses a blocked key without quota headers', async () => {
    const world = new World(api)
    await world.origin.block('ip:203.0.113.178', '1h')
    const denial = await world.origin.consume({ key: 'ip:203.0.113.178' })
    const { handle } = load(api, await storeOf(world), world.originMs)
    const { headers, body } = (await handle(eventOf())) as FunctionResponse
    expect(Object.keys(headers)).toEqual(['cache-control', 'content-type', 'retry-after'])
    expect(body.data).toBe(httpReply(denial).body)
  })

  test.each([
    [59, '1'],
    [60, undefined],
  ])('lets a key pass once its time is over: after %d s', async (seconds, retryAfter) => {
    const world = new World(api)
    await world.exhaust('ip:203.0.113.178')
    const { handle } = load(api, await storeOf(world), world.originMs + seconds * 1000)
    const answer = (await handle(eventOf())) as FunctionResponse
    expect(answer.headers['retry-after']?.value).toBe(retryAfter)
  })

  test.each(['', 'nonsense', 'null', '{}', '[]', '["soon"]'])(
    'lets a key pass whose value is not of its making: %j',
    async (value) => {
      const { handle } = load(api, new Map([['api/ip:203.0.113.178', value]]))
      const event = eventOf()
      expect(await handle(event)).toBe(event.request)
    },
  )

  test.each<[string, string, Partial<FunctionEvent['request']>, boolean]>([
    ['a CORS preflight', 'OPTIONS', { headers: { 'access-control-request-method': { value: 'PUT' } } }, true],
    ['another OPTIONS', 'OPTIONS', {}, false],
    [
      'a preflight with a cookie, which no browser sends',
      'OPTIONS',
      { headers: { 'access-control-request-method': { value: 'PUT' }, cookie: { value: 'a=b' } } },
      false,
    ],
    [
      'a preflight with a body',
      'OPTIONS',
      { headers: { 'access-control-request-method': { value: 'PUT' }, 'content-length': { value: '1' } } },
      false,
    ],
  ])('of %s passes: %#', async (_, method, request, passes) => {
    const world = new World(api)
    await world.exhaust('ip:203.0.113.178')
    const { handle } = load(api, await storeOf(world), world.originMs)
    expect('statusCode' in (await handle(eventOf({ ...request, method })))).toBe(!passes)
  })

  test.each<[string, CloudFrontFunctionOptions['key'], Record<string, { value: string }>, string]>([
    [
      'the hash of an API key',
      { apiKey: 'X-API-Key' },
      { 'x-api-key': { value: 'sk_1' } },
      byApiKey.of('sk_1'),
    ],
    ['a header', { header: 'x-tenant' }, { 'x-tenant': { value: 'acme' } }, 'header:x-tenant:acme'],
    [
      'a header whose name has a quote',
      { header: "x-o'hara" },
      { "x-o'hara": { value: 'a' } },
      "header:x-o'hara:a",
    ],
    ['the address, without the header', { header: 'x-tenant' }, {}, 'ip:203.0.113.178'],
    [
      'a header that came twice',
      { header: 'x-tenant' },
      { 'x-tenant': { value: 'a', multiValue: [{ value: 'a' }, { value: 'b' }] } as never },
      'header:x-tenant:a, b',
    ],
  ])('looks for %s', async (_, key, headers, expected) => {
    const { handle, asked } = load({ ...api, key }, new Map())
    await handle(eventOf({ headers }))
    expect(asked).toEqual([`api/${expected}`])
  })

  const group = fc.oneof(
    fc.constantFrom('0', '0', '0', 'ffff', '64', 'ff9b', '2002', '2001'),
    fc.nat(0xffff).map((n) => n.toString(16)),
  )
  const ipv6 = fc.array(group, { minLength: 8, maxLength: 8 }).map((groups) => groups.join(':'))
  test.each([64, 48, 56, 128, 1, 17])(
    'looks for the key of byIp, of any address: /%d',
    async (ipv6Subnet) => {
      const { handle, asked } = load({ ...api, ipv6Subnet }, new Map())
      const special = [
        '203.0.113.7',
        '::',
        '::1',
        '2001:db8::',
        '2001:db8:0:0:1::1',
        '::ffff:203.0.113.7',
        '::ffff:cb00:7107',
        '::ffff:0:203.0.113.7',
        '64:ff9b::203.0.113.7',
        '2002:cb00:7107::1',
        '1:0:0:2:0:0:0:3',
      ]
      const agree = async (ip: string): Promise<void> => {
        await handle(eventOf({}, ip))
        expect(asked.at(-1)).toBe(`api/${byIp.of(ip, { ipv6Subnet })}`)
      }
      for (const ip of special) await agree(ip)
      await fc.assert(fc.asyncProperty(fc.oneof(fc.ipV4(), fc.ipV6(), ipv6), agree), {
        seed: 1,
        numRuns: 300,
      })
    },
  )

  test('fits into CloudFront, whatever it is made of', () => {
    const name = '"'.repeat(64)
    const { code } = cloudFrontFunction({ ...api, name, key: { apiKey: 'x'.repeat(64) } })
    expect(Buffer.byteLength(code)).toBeLessThan(10_240)
  })

  const engine = spawnSync('njs', ['-v']).status === 0 ? ['njs'] : [process.execPath, '--input-type=commonjs']
  test(`runs in njs, the engine of CloudFront, where that is installed, else in Node.js: ${engine[0]}`, () => {
    const { code } = cloudFrontFunction(api)
    const store =
      "{ get: async (key) => key === 'api/ip:203.0.113.178' ? '[9999999999]' : Promise.reject(new Error()) }"
    const event = (ip: string): string => JSON.stringify(eventOf({}, ip))
    const input = `${code.replace(/^import .*$/m, `const cf = { kvs: () => (${store}) }`)}
const tell = (answer) => console.log(answer.statusCode || answer.method)
handler(${event('203.0.113.178')}).then(tell).then(() => handler(${event('2001:db8::1')})).then(tell)
`
    const [command = '', ...args] = engine
    const { status, stdout } = spawnSync(command, [...args, '-'], { input, encoding: 'utf8' })
    expect({ status, told: stdout.split(/\s+/) }).toEqual({ status: 0, told: ['429', 'GET', ''] })
  })
})

test('an await is the whole right side of a statement, as njs wants it', () => {
  const code = cloudFrontFunction(api).code.replaceAll(/\/\/.*$/gm, '')
  expect(code).toMatch(/\bawait\b/)
  expect(code.replaceAll(/^ *const \w+ = await \w+\.get\([^\n]*\)$/gm, '')).not.toMatch(/\bawait\b/)
})

describe('what it cannot do of the policies', () => {
  test('is returned and written, the same', () => {
    const lines: string[] = []
    const { differences } = cloudFrontFunction({ ...api, logger: { warn: (line) => lines.push(line) } })
    expect(lines).toEqual(
      differences.map((difference) => `sluice: CloudFront function of "api": ${difference}`),
    )
    expect(differences[0]).toContain('cannot count')
  })

  test.each<[string, CloudFrontFunctionOptions, RegExp]>([
    [
      'gives units back sooner than a feed tells',
      { ...api, algorithm: 'gcra' as never, limit: 100 },
      /every 600 ms/,
    ],
    ['refuses everything', { ...api, limit: 0 }, /refuses everything/],
    ['has a window that is over at once', { ...api, window: '1s' }, /over before the feed lists them/],
  ])('is said of a policy that %s', (_, options, said) => {
    expect(cloudFrontFunction(options).differences.join('\n')).toMatch(said)
    expect(cloudFrontFunction(api).differences.join('\n')).not.toMatch(said)
  })

  test.each<[string, unknown, RegExp]>([
    ['no options', undefined, /`limit` is undefined/],
    ['a key that is none', { ...api, key: 'user' }, /`key` is "user"/],
    ['a header with a quote and a space', { ...api, key: { header: "x' y" } }, /`key`/],
    ['a subnet of nothing', { ...api, ipv6Subnet: 0 }, /`ipv6Subnet` is 0/],
  ])('is not written with %s', (_, options, message) => {
    expect(() => cloudFrontFunction(options as CloudFrontFunctionOptions)).toThrow(message)
  })
})
