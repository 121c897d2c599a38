import { checksFor, Process, pass, stocked } from '../../test/leasing.js'
import { SharedStore } from '../../test/shared-store.js'

let store: SharedStore
beforeEach(() => {
  jest.useFakeTimers({ now: 1_800_000_000_000 })
  store = new SharedStore()
})
afterEach(() => {
  jest.useRealTimers()
})

describe('a budget that is spent', () => {
  test('is told to those whose it is, and what was drawn for them goes back but for what may be held', async () => {
    const process = new Process(store, checksFor(100), 'unknown')
    store.outMs = () => 20
    store.backMs = () => 20
    process.ask('patient', 2, 100)
    process.ask('hasty', 30, 50)
    process.ask('as patient', 3, 100)
    await pass(90)
    expect(process.outcomes).toEqual(['patient passes', 'hasty: SLUICE_STORE_TIMEOUT', 'as patient passes'])
    await pass(40)
    expect(await store.remaining(checksFor(100))).toBe(94)
    expect(process.reservation.tally).toEqual({ charged: 35, admitted: 5, returned: 29, expired: 0 })
    expect(process.reservation.held).toBe(1)
  })

  test('leaves what was drawn for who left to nobody who came later, but for what may be held', async () => {
    const process = new Process(store, checksFor(100), 'unknown')
    store.outMs = store.backMs = () => 20
    process.ask('first', 1)
    await pass(5)
    process.ask('stays', 2, 1000)
    process.ask('leaves', 30, 50)
    await pass(60)
    for (let i = 0; i < 3; i++) process.ask(`later ${i}`)
    await pass(15)
    expect(process.outcomes).toEqual([
      'first passes',
      'leaves: SLUICE_STORE_TIMEOUT',
      'stays passes',
      'later 0 passes',
    ])
    await pass(40)
    expect(process.outcomes.slice(4)).toEqual(['later 1 passes', 'later 2 passes'])
    expect(process.reservation.tally).toEqual({ charged: 35, admitted: 6, returned: 29, expired: 0 })
  })

  test('gives the call no longer than the last of those who wait', async () => {
    const process = new Process(store, checksFor(100))
    store.backMs = () => 1e6
    const options: number[] = []
    const { consume } = store
    store.consume = (checks, { timeoutMs } = { timeoutMs: 0 }) => {
      options.push(timeoutMs)
      return consume.call(store, checks, { timeoutMs })
    }
    process.ask('first', 1, 30)
    await pass(31)
    expect(options).toEqual([30])
    expect(process.outcomes).toEqual(['first: SLUICE_STORE_TIMEOUT'])
  })
})

describe('a store that fails', () => {
  test('is told to exactly those who asked, and asked anew by those who came since', async () => {
    const process = new Process(store, checksFor(100))
    store.outMs = () => 10
    store.fails = () => true
    process.ask('first')
    await pass(5)
    process.ask('second')
    process.ask('third', 2)
    await pass(5)
    expect(process.outcomes).toEqual(['first: ECONNRESET'])
    store.fails = () => false
    await pass(10)
    expect(process.outcomes).toEqual(['first: ECONNRESET', 'second passes', 'third passes'])
    process.ask('fourth')
    await pass(10)
    expect(process.outcomes.at(-1)).toBe('fourth passes')
  })

  test('is not told to those who are served from what is held', async () => {
    const process = await stocked(store, 5)
    store.fails = () => true
    for (let i = 0; i < 5; i++) {
      expect(await process.take()).toMatchObject({ allowed: true, source: 'lease' })
      await pass(15)
    }
    // It is not asked again before it must be.
    expect(store.calls).toHaveLength(1)
    store.fails = () => false
    process.ask('the next')
    await pass(20)
    expect(process.outcomes).toEqual(['the next passes'])
  })
})

describe('while a call is on its way', () => {
  /** Of 47 units, for which two wait; three are held. */
  async function underWay(): Promise<Process> {
    const process = await stocked(store, 5)
    await process.take(2)
    process.ask('a', 10)
    process.ask('b', 20)
    await pass(5)
    return process
  }

  test('close gives back the rest of what it brings, and waits for that', async () => {
    const process = await underWay()
    let closed = false
    void process.reservation.close().then(() => {
      closed = true
    })
    await pass(30)
    expect(closed).toBe(false)
    await pass(10)
    expect(closed).toBe(true)
    expect(process.outcomes).toEqual(['a passes', 'b passes'])
    const { tally, held } = process.reservation
    expect({ held, back: tally.charged - tally.admitted }).toEqual({ held: 0, back: 20 })
    expect(await store.remaining(checksFor(10_000))).toBe(10_000 - tally.admitted)
  })

  test('after a close the calls that follow ask for those who still wait, and for no more', async () => {
    const process = await underWay()
    process.ask('c', 30)
    const closing = process.reservation.close()
    await pass(100)
    await closing
    expect(process.outcomes).toEqual(['a passes', 'b passes', 'c passes'])
    expect(store.calls.findLast(({ method }) => method === 'consume')).toMatchObject({ least: 30, most: 30 })
    const { tally } = process.reservation
    expect(await store.remaining(checksFor(10_000))).toBe(10_000 - tally.admitted)
  })

  test('reset forgets the rest of what it brings', async () => {
    const process = await underWay()
    // Overtakes it.
    store.outMs = store.backMs = () => 1
    const reset = process.reservation.reset(
      checksFor(10_000).map(({ key }) => key),
      { timeoutMs: 100 },
    )
    await pass(60)
    await reset
    expect(process.outcomes).toEqual(['a passes', 'b passes'])
    expect(process.reservation.tally).toMatchObject({ returned: 0, expired: 20 })
    expect(process.reservation.held).toBe(0)
  })
})
