import { resolvePolicy } from '@sluice/core'
import {
  DurableObjectStore,
  type DurableObjectStoreOptions,
  type ObjectNamespace,
} from './durable-object-store.js'
import { type Answer, type Call, decodeCall } from './wire.js'

/** Objects that answer as the test says, and what they were asked. */
function namespace(answer: (call: Call) => Answer | Promise<Answer> = () => ({ verdicts: [] })) {
  const asked: [object: string, call: Call][] = []
  const binding: ObjectNamespace = {
    idFromName: (name) => name,
    get: (id) => ({
      async fetch(_url, { body }) {
        const call = decodeCall(body)
        asked.push([id, call])
        const answered = await answer(call)
        return { json: async () => answered }
      },
    }),
  }
  return { asked, binding }
}

const policy = resolvePolicy({ limit: 5, window: '1m' })
const check = (key: string, name = 'default') => ({ key: `1:{${key}}:${name}:5`, policy, least: 1, most: 1 })
const charge = { atUs: 1, resetUs: 1, units: 1, policy }
const options = { timeoutMs: 1000 }

describe('a DurableObjectStore', () => {
  test.each<[what: string, namespace: unknown, options: object, option: string]>([
    ['no binding', undefined, {}, 'namespace'],
    ['another kind of binding', { get: () => {}, put: () => {} }, {}, 'namespace'],
    ['no shards', namespace().binding, { shards: 0 }, 'shards'],
    ['half a shard', namespace().binding, { shards: 1.5 }, 'shards'],
    ['too many shards', namespace().binding, { shards: 1_000_001 }, 'shards'],
    ['a waitUntil that is no function', namespace().binding, { waitUntil: true }, 'waitUntil'],
    ['an option that nobody knows', namespace().binding, { shard: 3 }, 'shard'],
  ])('refuses %s', (_, binding, options, option) => {
    expect(() => new DurableObjectStore(binding as ObjectNamespace, options)).toThrow(
      expect.objectContaining({ name: 'SluiceError', path: [option] }),
    )
  })

  test('asks one object, once, for all checks of a key, whatever their limiters', async () => {
    const { asked, binding } = namespace()
    const store = new DurableObjectStore(binding)
    const checks = [check('a', 'one'), check('a', 'two')]
    await store.consume(checks, options)
    await store.peek(checks, options)
    expect(asked.map(([object, call]) => [object, call.method])).toEqual([
      ['a', 'consume'],
      ['a', 'peek'],
    ])
    expect(asked[0]?.[1]).toMatchObject({ checks: [{ key: '1:{a}:one:5' }, { key: '1:{a}:two:5' }] })
  })

  test('asks each object once for refunds and resets of several keys', async () => {
    const { asked, binding } = namespace(() => ({}))
    const store = new DurableObjectStore(binding)
    const keys = ['a', 'b', 'a'].map((key) => check(key).key)
    await store.refund(
      keys.map((key) => ({ ...charge, key })),
      options,
    )
    await store.reset(keys, options)
    expect(asked.map(([object, call]) => [object, call.method])).toEqual([
      ['a', 'refund'],
      ['b', 'refund'],
      ['a', 'reset'],
      ['b', 'reset'],
    ])
  })

  test('refuses to decide by keys of several objects, of which none is charged then', async () => {
    const { asked, binding } = namespace()
    const decision = new DurableObjectStore(binding).consume([check('a'), check('b')], options)
    await expect(decision).rejects.toMatchObject({ code: 'SLUICE_BAD_KEY' })
    expect(asked).toEqual([])
  })

  test('asks nobody about nothing', async () => {
    const { asked, binding } = namespace()
    expect(await new DurableObjectStore(binding).consume([], options)).toEqual([])
    expect(asked).toEqual([])
  })

  test('spreads keys over as many objects as there are shards, each key in one', async () => {
    const { asked, binding } = namespace()
    const store = new DurableObjectStore(binding, { shards: 4 })
    for (let i = 0; i < 200; i++) await store.consume([check(`key ${i % 100}`)], options)
    const objects = asked.map(([object]) => object)
    expect(new Set(objects)).toEqual(new Set(['shard 0', 'shard 1', 'shard 2', 'shard 3']))
    expect(objects.slice(0, 100)).toEqual(objects.slice(100))
  })

  test('asks once more, by the clock of the object, when that finds the call too late', async () => {
    const aheadUs = 3_600e6
    const { asked, binding } = namespace(({ notAfterUs }) => {
      const atUs = Date.now() * 1000 + aheadUs
      return atUs > notAfterUs ? { lateAtUs: atUs } : { verdicts: [] }
    })
    const store = new DurableObjectStore(binding)
    await store.consume([check('a')], options)
    await store.consume([check('a')], options)
    expect(asked).toHaveLength(3)
  })

  test.each<[what: string, answer: Answer, error: object]>([
    ['is reached too late again', { lateAtUs: 9e15 }, { code: 'SLUICE_STORE_TIMEOUT' }],
    [
      'fails',
      { error: 'out of space' },
      { code: 'SLUICE_STORE_FAILED', message: expect.stringContaining('out of space') },
    ],
  ])('fails with a code when an object %s', async (_, answer, error) => {
    const { asked, binding } = namespace(() => answer)
    const store = new DurableObjectStore(binding)
    await expect(store.consume([check('a')], options)).rejects.toMatchObject(error)
    expect(asked.length).toBeLessThanOrEqual(2)
  })

  test('has the Worker wait for calls, even such that fail', async () => {
    const { binding } = namespace(() => Promise.reject(new Error('gone')))
    const waited: Promise<unknown>[] = []
    const waitUntil: DurableObjectStoreOptions['waitUntil'] = (promise) => waited.push(promise)
    const store = new DurableObjectStore(binding, { waitUntil })
    await expect(store.refund([{ ...charge, key: 'a' }], options)).rejects.toThrow('gone')
    expect(waited).toHaveLength(1)
    await expect(waited[0]).resolves.toBeUndefined()
  })

  test('that is closed says so, and may be closed again', async () => {
    const { binding } = namespace()
    const store = new DurableObjectStore(binding)
    await store.close()
    await store.close()
    await expect(store.consume([check('a')], options)).rejects.toMatchObject({ code: 'SLUICE_CLOSED' })
  })
})
