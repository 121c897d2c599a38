import { randomUUID } from 'node:crypto'
import { type Check, MemoryStore, SluiceError, type Verdict } from '@sluice/core'
import { parity, storeContract } from '@sluice/testing'
import { check, limiter, policyOf } from '../../test/harness.js'
import { functionalClient } from '../../test/redis.js'
import { type RestBridge, startBridge } from '../../test/rest-bridge.js'
import { script as timedScript } from '../../test/timed-script.generated.js'
import { RedisStore } from '../index.js'
import { RedisRestStore, type RedisRestStoreOptions } from './index.js'

const client = functionalClient({ keyPrefix: '' })
let bridge: RestBridge
beforeAll(async () => {
  bridge = await startBridge(client)
})
afterEach(() => {
  bridge.fault = undefined
  bridge.rewrite = undefined
})
afterAll(async () => {
  await bridge.close()
  await client.quit()
})

function restStore(options: Partial<RedisRestStoreOptions> = {}): RedisRestStore {
  return new RedisRestStore({
    url: bridge.url,
    token: bridge.token,
    prefix: `test:${randomUUID()}`,
    ...options,
  })
}

storeContract('a RedisRestStore', () => restStore(), { clock: false })

describe('with the script by the clock of a test, over HTTP', () => {
  parity(
    'a RedisRestStore',
    (nowUs) => {
      bridge.rewrite = ([name, code, ...args]) =>
        String(name).startsWith('EVAL')
          ? ['EVAL', timedScript, ...args, nowUs()]
          : [name as string, code as string, ...args]
      return [new MemoryStore({ nowUs }), restStore()]
    },
    { runs: 4 },
  )
})

const policy = policyOf(100)
const keyed = (key: string): Check => check(key, policy)

/** Charges one unit, or tells why not. */
async function consume(store: RedisRestStore, key = 'k', timeoutMs = 10_000): Promise<number | string> {
  try {
    const [verdict] = await store.consume([keyed(key)], { timeoutMs })
    return (verdict as Verdict).remaining
  } catch (error) {
    return error instanceof SluiceError ? error.message : `${error}`
  }
}

describe('what a RedisRestStore asks', () => {
  /** A store whose server's clock is known, and the requests from then on. */
  async function acquainted(options?: Partial<RedisRestStoreOptions>): Promise<RedisRestStore> {
    const store = restStore(options)
    await consume(store, 'acquaintance')
    bridge.requests.length = 0
    return store
  }

  const asked = (): string[] =>
    bridge.requests.map(({ path, commands }) => `${path} ${commands.map(([name]) => name).join()}`)

  test('is twice the first time, since the server tells its clock with its first reply, and once from then on', async () => {
    bridge.requests.length = 0
    const store = restStore()
    expect(await consume(store)).toBe(99)
    expect(asked()).toEqual(['/ EVALSHA', '/ EVALSHA'])
    expect(await consume(store)).toBe(98)
    expect(asked()).toHaveLength(3)
  })

  test('is the whole script once, where the server has lost it B91', async () => {
    const store = await acquainted()
    await client.script('FLUSH')
    expect(await Promise.all(['a', 'b'].map((key) => consume(store, key)))).toEqual([99, 99])
    expect(await consume(store, 'a')).toBe(98)
    expect(asked()).toEqual(['/pipeline EVALSHA,EVALSHA', '/pipeline EVAL,EVAL', '/ EVALSHA'])
  })

  test('of one turn goes out in one request, and in several beyond 32', async () => {
    const store = await acquainted()
    const left = await Promise.all(Array.from({ length: 70 }, () => consume(store)))
    expect(left).toEqual(Array.from({ length: 70 }, (_, i) => 99 - i))
    expect(bridge.requests.map(({ commands }) => commands.length)).toEqual([32, 32, 6])
  })

  test('uses the keys of a RedisStore, and they count together', async () => {
    const prefix = `test:${randomUUID()}`
    const store = restStore({ prefix })
    const other = new RedisStore(client, { prefix })
    await consume(store)
    expect(await other.consume([keyed('k')], { timeoutMs: 10_000 })).toMatchObject([{ remaining: 98 }])
    expect(await client.exists(`${prefix}:k`)).toBe(1)
    await other.close()
  })

  test('is one command to forget several keys', async () => {
    const store = await acquainted()
    await Promise.all([consume(store, 'a'), consume(store, 'b')])
    bridge.requests.length = 0
    await store.reset(['a', 'b'], { timeoutMs: 10_000 })
    expect(asked()).toEqual(['/ DEL'])
    expect(await Promise.all([consume(store, 'a'), consume(store, 'b')])).toEqual([99, 99])
  })

  test('has the prefix `sluice` by default, and the path of the URL before it', async () => {
    const seen: { url: string; body: unknown }[] = []
    const store = new RedisRestStore({
      url: 'https://redis.example/base/',
      token: 't',
      fetch: async (url, init) => {
        seen.push({ url: String(url), body: JSON.parse(String(init?.body)) })
        return Response.json({ result: 1 })
      },
    })
    await store.reset(['k'], { timeoutMs: 1000 })
    await Promise.all([
      store.reset(['a'], { timeoutMs: 1000 }),
      store.reset(['b'], { timeoutMs: 1000 }),
    ]).catch(() => {})
    expect(seen).toEqual([
      { url: 'https://redis.example/base', body: ['DEL', 'sluice:k'] },
      {
        url: 'https://redis.example/base/pipeline',
        body: [
          ['DEL', 'sluice:a'],
          ['DEL', 'sluice:b'],
        ],
      },
    ])
  })
})

describe('a RedisRestStore whose service fails', () => {
  const failed = (why: string): string => `Redis over HTTP failed: ${why} (SLUICE_STORE_FAILED)`

  test.each<[string, NonNullable<RestBridge['fault']>, string]>([
    [
      'a gateway that answers 502 in HTML',
      (_, response) => !!response.writeHead(502).end('<html>'),
      'HTTP 502',
    ],
    [
      'an error of Redis',
      (_, response) => !!response.writeHead(400).end('{"error":"LOADING soon"}'),
      'LOADING soon',
    ],
    ['JSON that is no answer', (_, response) => !!response.writeHead(200).end('[]'), 'HTTP 200'],
    ['an answer without a result', (_, response) => !!response.writeHead(200).end('{}'), 'HTTP 200'],
    ['null', (_, response) => !!response.writeHead(200).end('null'), 'HTTP 200'],
    [
      'a result with a status of failure',
      (_, response) => !!response.writeHead(500).end('{"result":1}'),
      'HTTP 500',
    ],
    [
      'a redirection, which would see the token',
      (_, response) => !!response.writeHead(307, { location: bridge.url }).end(),
      'HTTP 307',
    ],
    [
      'a result that is no reply of the script',
      (_, response) => !!response.writeHead(200).end('{"result":7}'),
      "the script's reply is 7, not base64",
    ],
  ])('fails by %s, and goes on once that is over', async (_, fault, why) => {
    const store = restStore()
    bridge.fault = fault
    expect(await consume(store)).toBe(failed(why))
    bridge.fault = undefined
    expect(await consume(store)).toBe(99)
  })

  test.each([
    ['text that is no base64', '"%"'],
    ['too few bytes', '"AAAA"'],
  ])('fails by a result of %s', async (_, result) => {
    bridge.fault = (_request, response) => !!response.writeHead(200).end(`{"result":${result}}`)
    expect(await consume(restStore())).toMatch(/^Redis over HTTP failed: .*\(SLUICE_STORE_FAILED\)$/)
  })

  test('fails by a pipeline that is refused as a whole, for each', async () => {
    const store = restStore()
    await consume(store)
    bridge.fault = (_, response) => !!response.writeHead(400).end('{"error":"ERR too large"}')
    expect(await Promise.all([consume(store), consume(store)])).toEqual([
      failed('ERR too large'),
      failed('ERR too large'),
    ])
  })

  test('fails one of a pipeline, and not the others', async () => {
    const store = restStore()
    await consume(store)
    bridge.rewrite = (command) =>
      command.some((part) => String(part).endsWith(':bad')) ? ['NONSENSE'] : command
    const answers = await Promise.all([consume(store), consume(store, 'bad'), consume(store)])
    expect(answers).toEqual([98, failed("ERR unknown command 'NONSENSE', with args beginning with: "), 97])
  })

  test('fails by a wrong token, which no message shows', async () => {
    const message = await consume(restStore({ token: 'secret-token' }))
    expect(message).toBe(failed('WRONGPASS invalid or missing auth token'))
    expect(message).not.toContain('secret')
  })

  test('fails by a service that is not there, with the reason', async () => {
    const gone = await startBridge(client)
    await gone.close()
    expect(await consume(restStore({ url: gone.url }))).toMatch(/^Redis over HTTP failed: .*ECONNREFUSED/)
  })

  test('fails by a connection that is cut', async () => {
    bridge.fault = (_, response) => !!response.destroy()
    expect(await consume(restStore())).toMatch(/SLUICE_STORE_FAILED/)
  })

  test('fails at the end of its budget, gives the request up, and what comes later charges nothing B103', async () => {
    const store = restStore()
    await consume(store)
    let gaveUp: (() => void) | undefined
    const givenUp = new Promise<void>((resolve) => {
      gaveUp = resolve
    })
    let held: readonly (string | number)[] = []
    bridge.fault = ({ commands }, response) => {
      held = commands[0] as typeof held
      return !!response.on('close', () => gaveUp?.())
    }
    expect(await consume(store, 'k', 50)).toBe(
      'Redis over HTTP did not answer within 50 ms (SLUICE_STORE_TIMEOUT)',
    )
    await givenUp
    bridge.fault = undefined
    await client.callBuffer(...(held.map(String) as [string, ...string[]]))
    expect(await consume(store)).toBe(98)
  })

  test('keeps the budget of each in one request', async () => {
    const store = restStore()
    await consume(store)
    let release: (() => void) | undefined
    bridge.fault = ({ commands }, response) => {
      if (commands.length === 1) return false
      release = () =>
        response.writeHead(200).end(JSON.stringify(commands.map(() => ({ error: 'ERR released' }))))
      return true
    }
    const patient = consume(store, 'k', 20_000)
    expect(await consume(store, 'k', 50)).toMatch(/SLUICE_STORE_TIMEOUT/)
    release?.()
    expect(await patient).toBe(failed('ERR released'))
  })

  test('denies or allows as the limiter says, and counts again afterwards', async () => {
    const strict = limiter(restStore(), { onStoreError: 'deny' })
    bridge.fault = (_, response) => !!response.writeHead(503).end()
    expect(await strict.consume({ key: 'a' })).toMatchObject({
      allowed: false,
      reason: 'store-error',
      degraded: true,
    })
    bridge.fault = undefined
    expect(await strict.consume({ key: 'a' })).toMatchObject({ allowed: true, remaining: 2, degraded: false })
    await strict.close()
  })
})

describe('a RedisRestStore', () => {
  test('that was closed refuses calls, and asks nothing', async () => {
    const store = restStore()
    await store.close()
    bridge.requests.length = 0
    expect(await consume(store)).toBe('This RedisRestStore was closed (SLUICE_CLOSED)')
    expect(bridge.requests).toEqual([])
  })
})
