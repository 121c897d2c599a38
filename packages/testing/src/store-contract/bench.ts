import { randomUUID } from 'node:crypto'
import {
  type Algorithm,
  type Check,
  type ClockUs,
  type Policy,
  type ResolvedPolicy,
  resolvePolicy,
  type Store,
  type Verdict,
} from '@sluice/core'
import { numbersOf } from '../verdict.js'

/** Makes a store, which counts by the clock that it is given where it can. It may hold other keys already. */
export type MakeStore = (nowUs: ClockUs) => Store | Promise<Store>

/** On no edge of any window. */
const startUs = 1_800_057_612_345_678

export const options = { timeoutMs: 10_000 }

/** A store under test, with a clock and keys of its own for each test. */
export class StoreBench {
  /** Whether the store counts by {@link nowUs}. */
  readonly clock: boolean
  nowUs = startUs
  store!: Store
  readonly #makeStore: MakeStore
  #prefix = ''

  constructor(makeStore: MakeStore, clock: boolean) {
    this.#makeStore = makeStore
    this.clock = clock
  }

  /** Begins a test. */
  async open(): Promise<void> {
    this.nowUs = startUs
    this.#prefix = randomUUID()
    this.store = await this.#makeStore(() => this.nowUs)
  }

  /** A policy that can take `limit` units at once, in a window so long that nothing comes back during a test. */
  readonly policyOf = (
    algorithm: Algorithm,
    limit: number,
    changes: Partial<Policy> = {},
  ): ResolvedPolicy => {
    const size = algorithm === 'leaky-bucket' ? { queue: limit - 1 } : {}
    return resolvePolicy({ algorithm, limit, window: '400d', ...size, ...changes })
  }

  readonly check = (key: string, policy: ResolvedPolicy, least = 1, most = least): Check => {
    return { key: `1:{${this.#prefix}}:${key}`, policy, least, most }
  }

  readonly consume = (...checks: Check[]): Promise<readonly Verdict[]> => this.#call('consume', checks)

  readonly peek = (...checks: Check[]): Promise<readonly Verdict[]> => this.#call('peek', checks)

  readonly consumeOne = async (...args: Parameters<StoreBench['check']>): Promise<Verdict> => {
    return (await this.consume(this.check(...args)))[0] as Verdict
  }

  readonly peekOne = async (...args: Parameters<StoreBench['check']>): Promise<Verdict> => {
    return (await this.peek(this.check(...args)))[0] as Verdict
  }

  readonly remaining = async (key: string, policy: ResolvedPolicy): Promise<number> => {
    return (await this.peekOne(key, policy, 0)).remaining
  }

  /** What must be equal of two verdicts between which nothing was charged, but time may have passed. */
  readonly lasting = (verdict: Verdict): Partial<Verdict> => {
    const { allowed, granted, remaining } = verdict
    return this.clock ? verdict : { allowed, granted, remaining }
  }

  async #call(method: 'consume' | 'peek', checks: readonly Check[]): Promise<readonly Verdict[]> {
    const verdicts = (await this.store[method](checks, options)).map(numbersOf)
    const atUs = this.clock ? this.nowUs : verdicts[0]?.atUs
    if (verdicts.length !== checks.length || !verdicts.every((verdict) => isSound(verdict, atUs))) {
      const asked = `${checks.length} checks at ${this.nowUs}`
      throw new Error(`To ${asked} the store answers ${JSON.stringify(verdicts)}`)
    }
    return verdicts
  }
}

/** Whether the numbers are whole and not negative, the wait fits the answer, and the time is this. */
function isSound(
  { allowed, retryUs, ...numbers }: ReturnType<typeof numbersOf>,
  atUs: number | undefined,
): boolean {
  return (
    numbers.atUs === atUs &&
    Object.values(numbers).every((number) => Number.isSafeInteger(number) && number >= 0) &&
    (allowed ? retryUs === 0 : retryUs === -1 || (Number.isSafeInteger(retryUs) && retryUs > 0))
  )
}
