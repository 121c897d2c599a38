import type { SluiceEvent } from '../events.js'
import { Limiter } from '../limiter.js'
import { MemoryStore } from '../memory-store.js'

/** A shared store that fails on demand. */
class FlakyStore extends MemoryStore {
  override readonly shared = true as false
  failure: Error | undefined
  asked = 0

  override consume(...args: Parameters<MemoryStore['consume']>): ReturnType<MemoryStore['consume']> {
    this.asked += 1
    return this.failure ? Promise.reject(this.failure) : super.consume(...args)
  }
}

const failure = new Error('ECONNREFUSED')
const policy = { limit: 1000, window: '1d' } as const

beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

/** Sends requests, 10 ms apart. */
async function send(limiter: Limiter, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    await limiter.consume({ key: 'k' })
    jest.advanceTimersByTime(10)
  }
}

const kinds = ({ mock }: jest.Mock<void, [SluiceEvent]>): string[] =>
  mock.calls.map(([{ type }]) => type).filter((type) => type.startsWith('store-') && type !== 'store-error')

describe('a store that keeps failing', () => {
  it('is not asked, but for one probe at a time, and is asked again once one succeeded', async () => {
    const store = new FlakyStore()
    const limiter = new Limiter({ store, ...policy, logger: { warn: () => {} } })
    store.failure = failure
    await send(limiter, 3)
    expect(store.asked).toBe(3)
    await send(limiter, 50)
    expect(store.asked).toBe(5)
    store.failure = undefined
    await send(limiter, 30)
    expect(await limiter.consume({ key: 'k' })).toMatchObject({ degraded: false, source: 'store' })
  })

  it('is refused by one breaker for all limiters on it, and each decides by its own mode', async () => {
    const store = new FlakyStore()
    const errors: Error[] = []
    const open = new Limiter({ name: 'open', store, ...policy, logger: { warn: () => {} } })
    const closed = new Limiter({
      name: 'closed',
      store,
      ...policy,
      onStoreError: (error) => {
        errors.push(error)
        return 'deny'
      },
      logger: { warn: () => {} },
    })
    store.failure = failure
    await send(open, 3)
    expect(await closed.consume({ key: 'k' })).toMatchObject({ allowed: false, reason: 'store-error' })
    expect(store.asked).toBe(3)
    expect(errors).toMatchObject([{ code: 'SLUICE_STORE_DOWN', cause: failure }])
  })

  it('is told of once to each listener and each log, with cause, length and what was decided without it', async () => {
    const store = new FlakyStore()
    const onEvent = jest.fn<void, [SluiceEvent]>()
    const other = jest.fn<void, [SluiceEvent]>()
    const logger = { warn: jest.fn() }
    const limiters = ['a', 'b'].map((name) => new Limiter({ name, store, ...policy, onEvent, logger }))
    new Limiter({ name: 'c', store, ...policy, onEvent: other, logger })
    store.failure = failure
    await send(limiters[0] as Limiter, 10)
    await send(limiters[1] as Limiter, 10)
    const downs = onEvent.mock.calls.map(([event]) => event).filter(({ type }) => type === 'store-down')
    expect(downs).toEqual([{ type: 'store-down', limiters: ['a', 'b'], error: failure }])
    expect(kinds(other)).toEqual(['store-down'])
    store.failure = undefined
    await send(limiters[0] as Limiter, 100)
    expect(kinds(onEvent)).toEqual(['store-down'])
    await jest.advanceTimersByTimeAsync(1000)
    const ups = onEvent.mock.calls.map(([event]) => event).filter(({ type }) => type === 'store-up')
    expect(ups).toEqual([
      { type: 'store-up', limiters: ['a', 'b'], downMs: expect.any(Number), degraded: expect.any(Number) },
    ])
    expect(logger.warn.mock.calls).toEqual([
      ['sluice: the store of "a", "b", "c" is down: ECONNREFUSED'],
      [
        expect.stringMatching(
          /^sluice: the store of "a", "b", "c" is up again after \d+ ms, in which \d+ requests/,
        ),
      ],
    ])
  })

  it('is told of to a limiter that is made meanwhile, unless its listener and log have heard of it', async () => {
    const store = new FlakyStore()
    const onEvent = jest.fn<void, [SluiceEvent]>()
    const other = jest.fn<void, [SluiceEvent]>()
    const logger = { warn: jest.fn() }
    const otherLogger = { warn: jest.fn() }
    const first = new Limiter({ name: 'a', store, ...policy, onEvent, logger })
    store.failure = failure
    await send(first, 3)
    new Limiter({ name: 'b', store, ...policy, onEvent, logger: otherLogger })
    new Limiter({ name: 'c', store, ...policy, onEvent: other, logger })
    expect(kinds(onEvent)).toEqual(['store-down'])
    expect(other.mock.calls).toEqual([[{ type: 'store-down', limiters: ['c'], error: failure }]])
    expect(logger.warn).toHaveBeenCalledTimes(1)
    expect(otherLogger.warn.mock.calls).toEqual([['sluice: the store of "b" is down: ECONNREFUSED']])
    store.failure = undefined
    await send(first, 50)
    await jest.advanceTimersByTimeAsync(1000)
    new Limiter({ name: 'd', store, ...policy, onEvent: other, logger })
    expect([kinds(onEvent), kinds(other)]).toEqual(Array(2).fill(['store-down', 'store-up']))
  })

  it('for short budgets only is asked with a longer one', async () => {
    const store = new FlakyStore()
    const common = { store, ...policy, logger: { warn: () => {} } }
    const hasty = new Limiter({ name: 'hasty', ...common, timeoutMs: 5 })
    const patient = new Limiter({ name: 'patient', ...common, timeoutMs: 500 })
    store.failure = failure
    await send(hasty, 3)
    store.failure = undefined
    expect(await hasty.consume({ key: 'k' })).toMatchObject({ degraded: true })
    expect(await patient.consume({ key: 'k' })).toMatchObject({ degraded: false })
  })
})
