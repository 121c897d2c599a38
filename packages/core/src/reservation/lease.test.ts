import { checksFor, Process, pass, stocked } from '../../test/leasing.js'
import { SharedStore } from '../../test/shared-store.js'
import type { Verdict } from '../store.js'

let store: SharedStore
beforeEach(() => {
  jest.useFakeTimers({ now: 1_800_000_000_000 })
  store = new SharedStore()
})
afterEach(() => {
  jest.useRealTimers()
})

describe('a request', () => {
  test('is served from what is held without asking the store', async () => {
    const process = await stocked(store)
    expect(await process.take()).toMatchObject({ source: 'lease', allowed: true, granted: 1, delayUs: 0 })
    expect(store.calls).toEqual([])
  })

  test('waits for the store only when it holds too little, and more is drawn before that', async () => {
    const process = await stocked(store, 5)
    process.ask('the one that leaves 4')
    await pass(0)
    expect(process.outcomes).toEqual(['the one that leaves 4 passes'])
    expect(store.calls).toMatchObject([{ method: 'consume', least: 1, most: 46 }])
    for (const name of ['4', '3', '2', '1']) process.ask(name)
    await pass(0)
    expect(process.outcomes).toHaveLength(5)
    process.ask('the one too many')
    await pass(19)
    expect(process.outcomes).toHaveLength(5)
    await pass(1)
    expect(process.outcomes.at(-1)).toBe('the one too many passes')
    expect(store.calls).toHaveLength(1)
    expect(process.reservation.held).toBe(45)
  })

  test('that is the first of its key asks for itself alone, and the next call asks for all who came since', async () => {
    store.backMs = () => 10
    const process = new Process(store, checksFor(10_000))
    for (let i = 0; i < 200; i++) process.ask(`${i}`)
    await pass(20)
    expect(process.outcomes).toEqual(Array.from({ length: 200 }, (_, i) => `${i} passes`))
    expect(store.calls).toMatchObject([
      { least: 1, most: 1 },
      { least: 1, most: 199 },
    ])
    expect(process.reservation.held).toBe(0)
  })

  test('waits behind those who came before, also where less would do', async () => {
    const process = await stocked(store, 5)
    for (const [name, cost] of [
      ['dear', 20],
      ['cheap', 1],
      ['middling', 7],
    ] as const) {
      process.ask(name, cost)
    }
    await pass(19)
    expect(process.outcomes).toEqual([])
    await pass(1)
    expect(process.outcomes).toEqual(['dear passes', 'cheap passes', 'middling passes'])
  })

  test.each([
    ['above max', 51, 50],
    ['above the limit', 41, 40],
    ['of 0', 0, 40],
  ])('with a cost %s is the store’s own', async (_, cost, limit) => {
    const process = new Process(store, checksFor(limit === 40 ? 40 : 1000))
    await process.warmUp(10)
    const held = process.reservation.held
    const verdict = await process.take(cost)
    expect(verdict.source).toBeUndefined()
    expect(store.calls).toEqual([{ method: 'consume', least: cost, most: cost }])
    expect(process.reservation.held).toBe(held)
  })

  test('is denied when the store and this process have too little between them, with the wait of what is lacking', async () => {
    const checks = checksFor(60, { algorithm: 'token-bucket', window: '60s' })
    const process = new Process(store, checks)
    await process.warmUp(12)
    const { held } = process.reservation
    expect(held).toBeGreaterThan(2)
    const others = new Process(store, checks, 'unknown')
    while ((await store.remaining(checks)) > 0) await others.take()
    // Three more than held.
    const verdict = await process.take(held + 3)
    expect(verdict).toMatchObject({ allowed: false, granted: 0, remaining: held })
    expect(verdict.retryUs).toBeGreaterThan(2_000_000)
    expect(verdict.retryUs).toBeLessThanOrEqual(3_000_000)
    expect(await process.take(held)).toMatchObject({ allowed: true, source: 'lease' })
  })

  test('is told the wait of one, however many wait with it', async () => {
    const process = new Process(store, checksFor(60, { algorithm: 'gcra', window: '60s' }))
    await process.take(50)
    await process.take(10)
    store.backMs = () => 10
    const verdicts = await Promise.all([...Array.from({ length: 10 }, () => process.take()), pass(30)])
    for (const verdict of verdicts.slice(0, -1)) {
      expect(verdict).toMatchObject({ allowed: false })
      expect((verdict as Verdict).retryUs).toBeLessThanOrEqual(1_000_000)
    }
  })

  test('is answered by the call that asked for it, also where the store has something for each call', async () => {
    // A unit comes back every millisecond, and two are asked for.
    const checks = checksFor(60_000, { algorithm: 'token-bucket', window: '60s', burst: 1 })
    const process = new Process(store, checks)
    await process.take()
    store.outMs = store.backMs = () => 10
    const waits: number[] = []
    const verdicts: Verdict[] = []
    for (let ms = 0; ms < 300; ms++) {
      for (let i = 0; i < 2; i++) {
        const askedMs = Date.now()
        void process.take().then((verdict) => {
          waits.push(Date.now() - askedMs)
          verdicts.push(verdict)
        })
      }
      await pass(1)
    }
    await pass(100)
    expect(verdicts).toHaveLength(600)
    expect(Math.max(...waits)).toBeLessThanOrEqual(40)
    const denied = verdicts.filter(({ allowed }) => !allowed)
    expect(denied.length).toBeGreaterThan(300)
    for (const verdict of denied) expect(verdict).toMatchObject({ granted: 0, remaining: 0, retryUs: 1000 })
  })

  test('that is cheaper passes where one before it was denied, and is charged as any other', async () => {
    const process = new Process(store, checksFor(5))
    store.backMs = () => 10
    for (const [name, cost] of [
      ['first', 1],
      ['dear', 3],
      ['too dear', 3],
      ['cheap', 1],
      ['too late', 1],
    ] as const) {
      process.ask(name, cost)
    }
    await pass(40)
    expect(process.outcomes).toEqual([
      'first passes',
      'dear passes',
      'too dear is denied',
      'cheap passes',
      'too late is denied',
    ])
    expect(store.calls).toHaveLength(2)
    expect(process.reservation.tally).toMatchObject({ charged: 5, admitted: 5 })
  })

  test('of another cost may pass, or is told exactly, where one was denied', async () => {
    const process = new Process(store, checksFor(10))
    store.backMs = () => 10
    process.ask('first')
    process.ask('ten', 10)
    process.ask('ten again', 10)
    process.ask('nine', 9)
    process.ask('one', 1)
    await pass(40)
    expect(process.outcomes).toEqual([
      'first passes',
      'ten is denied',
      'ten again is denied',
      'nine passes',
      'one is denied',
    ])
  })
})
