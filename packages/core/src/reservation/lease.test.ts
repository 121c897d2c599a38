import { pass } from '../../test/leasing.js'
import { checksOf, SharedStore } from '../../test/shared-store.js'
import { type Policy, resolvePolicy } from '../policy.js'
import type { Check, Verdict } from '../store.js'
import type { LeaseTerms } from './lease-terms.js'
import { Reservation } from './reservation.js'

const terms: LeaseTerms = { max: 50, ttlMs: 5000 }

let store: SharedStore
beforeEach(() => {
  jest.useFakeTimers({ now: 1_800_000_000_000 })
  store = new SharedStore()
})
afterEach(() => {
  jest.useRealTimers()
})

/** Units of which none come back during a test. */
function checksFor(limit: number, more: Partial<Policy> = {}): readonly Check[] {
  return checksOf([resolvePolicy({ algorithm: 'fixed-window', limit, window: '400d', ...more })])
}

/** One process. */
class Process {
  readonly reservation: Reservation
  readonly #checks: readonly Check[]
  readonly #terms: LeaseTerms
  /** The outcomes of what was asked, in the order in which they came. */
  readonly outcomes: string[] = []

  constructor(checks: readonly Check[], nodes: number | 'unknown' = 1, more: Partial<LeaseTerms> = {}) {
    this.reservation = new Reservation(store, () => (nodes === 'unknown' ? undefined : nodes))
    this.#checks = checks
    this.#terms = { ...terms, ...more }
  }

  async take(cost = 1, timeoutMs = 1000): Promise<Verdict> {
    const checks = this.#checks.map((check) => ({ ...check, least: cost, most: cost }))
    const [verdict] = await this.reservation.consume(checks, { timeoutMs, lease: this.#terms })
    return verdict as Verdict
  }

  /** Asks without waiting, and notes the outcome under a name. */
  ask(name: string, cost = 1, timeoutMs = 1000): void {
    void this.take(cost, timeoutMs).then(
      ({ allowed }) => this.outcomes.push(`${name} ${allowed ? 'passes' : 'is denied'}`),
      (error: Error & { code?: string }) => this.outcomes.push(`${name}: ${error.code ?? error.message}`),
    )
  }

  /** Spends one unit every 10 ms, so that as many are expected to be asked for later. */
  async warmUp(count = 40): Promise<void> {
    for (let i = 0; i < count; i++) {
      await this.take()
      await pass(10)
    }
    store.calls.length = 0
  }

  /** Takes what it holds, without the store, but for a number of units. */
  async spendTo(units: number): Promise<void> {
    while (this.reservation.held > units) await this.take()
    store.calls.length = 0
  }
}

/** Fifty units at hand, with the next call 10 ms on the way there and 10 back. */
async function stocked(limit = 10_000, left = 50): Promise<Process> {
  const process = new Process(checksFor(limit))
  await process.warmUp(200)
  // Until the last call, which finds the store in step with what is spent.
  while (process.reservation.held < 50 - 4) await process.take()
  await process.spendTo(left)
  store.outMs = store.backMs = () => 10
  return process
}

describe('a request', () => {
  test('is served from what is held without asking the store', async () => {
    const process = await stocked()
    expect(await process.take()).toMatchObject({ source: 'lease', allowed: true, granted: 1, delayUs: 0 })
    expect(store.calls).toEqual([])
  })

  test('waits for the store only when it holds too little, and more is drawn before that', async () => {
    const process = await stocked(10_000, 5)
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
    const process = new Process(checksFor(10_000))
    for (let i = 0; i < 20; i++) process.ask(`${i}`)
    await pass(20)
    expect(process.outcomes).toEqual(Array.from({ length: 20 }, (_, i) => `${i} passes`))
    expect(store.calls).toMatchObject([
      { least: 1, most: 1 },
      { least: 1, most: 19 },
    ])
    expect(process.reservation.held).toBe(0)
  })

  test('waits behind those who came before, also where less would do', async () => {
    const process = await stocked(10_000, 5)
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
    const process = new Process(checksFor(limit === 40 ? 40 : 1000))
    await process.warmUp(10)
    const held = process.reservation.held
    const verdict = await process.take(cost)
    expect(verdict.source).toBeUndefined()
    expect(store.calls).toEqual([{ method: 'consume', least: cost, most: cost }])
    expect(process.reservation.held).toBe(held)
  })

  test('is denied when the store and this process have too little between them, with the wait of what is lacking', async () => {
    const checks = checksFor(60, { algorithm: 'token-bucket', window: '60s' })
    const process = new Process(checks)
    await process.warmUp(4)
    // Three more than held.
    const { held } = process.reservation
    const others = new Process(checks, 'unknown')
    while ((await store.remaining(checks)) > 0) await others.take()
    const verdict = await process.take(held + 3)
    expect(verdict).toMatchObject({ allowed: false, granted: 0, remaining: held })
    expect(verdict.retryUs).toBeGreaterThan(2_000_000)
    expect(verdict.retryUs).toBeLessThanOrEqual(3_000_000)
    expect(await process.take(held)).toMatchObject({ allowed: true, source: 'lease' })
  })

  test('is told the wait of one, however many wait with it', async () => {
    const process = new Process(checksFor(60, { algorithm: 'gcra', window: '60s' }))
    await process.take(50)
    await process.take(10)
    store.backMs = () => 10
    const verdicts = await Promise.all([...Array.from({ length: 10 }, () => process.take()), pass(30)])
    for (const verdict of verdicts.slice(0, -1)) {
      expect(verdict).toMatchObject({ allowed: false })
      expect((verdict as Verdict).retryUs).toBeLessThanOrEqual(1_000_000)
    }
  })

  test('of another cost may pass, or is told exactly, where one was denied', async () => {
    const process = new Process(checksFor(10))
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

describe('a budget that is spent', () => {
  test('is told to those whose it is, and what was drawn for them goes back but for what may be held', async () => {
    const process = new Process(checksFor(100), 'unknown')
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

  test('gives the call no longer than the last of those who wait', async () => {
    const process = new Process(checksFor(100))
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
    const process = new Process(checksFor(100))
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
    const process = await stocked(10_000, 5)
    store.fails = () => true
    for (let i = 0; i < 5; i++) expect(await process.take()).toMatchObject({ allowed: true, source: 'lease' })
    expect(store.calls).toHaveLength(1)
    process.ask('the next')
    await pass(10)
    store.fails = () => false
    await pass(20)
    expect(process.outcomes).toEqual(['the next passes'])
  })
})

describe('while a call is on its way', () => {
  /** Of 47 units, for which two wait; three are held. */
  async function underWay(): Promise<Process> {
    const process = await stocked(10_000, 5)
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

  test('a close keeps nothing of the calls that follow for those who still wait', async () => {
    const process = await underWay()
    for (let i = 0; i < 7; i++) process.ask(`${i}`, 40)
    const closing = process.reservation.close()
    await pass(400)
    await closing
    expect(process.outcomes).toHaveLength(9)
    const { tally } = process.reservation
    expect(await store.remaining(checksFor(10_000))).toBe(10_000 - tally.admitted)
  })

  test('reset forgets the rest of what it brings', async () => {
    const process = await underWay()
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
