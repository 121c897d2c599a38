import type { Decision } from '../decision.js'
import type { SluiceEvent } from '../events.js'
import { Limiter } from '../limiter.js'
import { MemoryStore } from '../memory-store.js'
import type { Store } from '../store.js'

/** A server that can be taken away, and the way of any number of instances to it. */
class Server {
  away = false
  readonly #memory = new MemoryStore()

  connect(): Store {
    const memory = this.#memory
    const ask = async <T>(answer: () => Promise<T>): Promise<T> => {
      if (this.away) throw new Error('ECONNREFUSED')
      return answer()
    }
    return {
      shared: true,
      consume: (checks, options) => ask(() => memory.consume(checks, options)),
      peek: (checks) => ask(() => memory.peek(checks)),
      refund: (refunds) => ask(() => memory.refund(refunds)),
      reset: (keys) => ask(() => memory.reset(keys)),
      close: async () => {},
    }
  }
}

beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

async function hit(limiter: Limiter, count: number): Promise<Decision[]> {
  const decisions: Decision[] = []
  for (let i = 0; i < count; i++) decisions.push(await limiter.consume({ key: 'k' }))
  return decisions
}

const admitted = (decisions: readonly Decision[]): number => decisions.filter(({ allowed }) => allowed).length

test('instances that know their number admit one limit between them while the store is away, and resume its count with the first probe that succeeds B117', async () => {
  const server = new Server()
  const instances = Array.from({ length: 4 }, () => {
    const events: SluiceEvent[] = []
    const limiter = new Limiter({
      store: server.connect(),
      limit: 12,
      window: '1d',
      onStoreError: 'local',
      nodes: 4,
      onEvent: (event) => events.push(event),
      logger: { warn: () => {} },
    })
    return { limiter, events }
  })
  for (const { limiter } of instances) {
    expect(await hit(limiter, 2)).toMatchObject(Array(2).fill({ allowed: true, source: 'store' }))
  }

  server.away = true
  for (const { limiter, events } of instances) {
    const decisions = await hit(limiter, 10)
    expect(decisions).toMatchObject(Array(10).fill({ source: 'local', degraded: true, limit: 3 }))
    expect(admitted(decisions)).toBe(3)
    expect(events.filter(({ type }) => type === 'store-down')).toHaveLength(1)
    expect(events.filter(({ type }) => type === 'store-error')).toHaveLength(10)
  }

  server.away = false
  for (const { limiter } of instances) expect(await hit(limiter, 1)).toMatchObject([{ source: 'local' }])
  jest.advanceTimersByTime(100)
  const back: Decision[] = []
  for (const { limiter } of instances) back.push(...(await hit(limiter, 2)))
  expect(back).toMatchObject(Array(8).fill({ degraded: false, limit: 12 }))
  expect(back.filter(({ allowed }) => allowed)).toMatchObject(Array(4).fill({ source: 'store' }))
  // Of 12, the store had counted 8; what was served meanwhile is not added to it.
  expect(admitted(back)).toBe(4)

  jest.advanceTimersByTime(1000)
  for (const { events } of instances) {
    // It counts as down from the third failure on.
    expect(events.filter(({ type }) => type === 'store-up')).toMatchObject([{ downMs: 100, degraded: 9 }])
  }
})
