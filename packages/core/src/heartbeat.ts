import { CheckMaker } from './check-maker.js'
import { resolvePolicy } from './policy.js'
import type { Check, ConsumeOptions, Refund, Store, Verdict } from './store.js'

/** How long a process counts after it was last heard of, in milliseconds. */
const windowMs = 10_000
/** How often the count is read. */
const readMs = 2500
/** When a process counts itself again: with a later decision it would be missing for a while. */
const renewMs = windowMs - readMs

/** One unit a process and window: what is used of it is how many there are, a moment longer rather than shorter. */
const presence = resolvePolicy({
  name: '-',
  algorithm: 'sliding-window-ring',
  limit: 1_000_000_000,
  window: windowMs,
  slices: 50,
})

/**
 * Counts the processes that decide by a limiter on a shared store, by a rate limit of their own: each holds one unit of
 * ten seconds, and the number of units used is theirs. It beats along with decisions, without a timer, so a process
 * without traffic is none of them.
 */
export class Heartbeat {
  readonly #store: Store
  readonly #check: Check
  readonly #nowMs: () => number
  #nodes: number | undefined
  #isSettled = false
  #readAtMs = Number.NEGATIVE_INFINITY
  #countedAtMs = Number.NEGATIVE_INFINITY
  #last: Verdict | undefined
  #reading: Promise<void> | undefined

  /**
   * @param encodedName the limiter's, as in keys
   * @param nowMs a monotonic clock in milliseconds; for tests
   */
  constructor(store: Store, encodedName: string, nowMs: () => number = () => performance.now()) {
    this.#store = store
    // No text from users can make this key: what is in braces is encoded without a tilde.
    this.#check = new CheckMaker(encodedName).make([presence], '~nodes', 1)[0] as Check
    this.#nowMs = nowMs
  }

  /** How many processes there are, this one included; undefined until the store has told. */
  get nodes(): number | undefined {
    return this.#nodes
  }

  /** The same, once the others had the time to read that there is one more. */
  get settledNodes(): number | undefined {
    return this.#isSettled ? this.#nodes : undefined
  }

  /** Beats if it is time to; what fails is tried again with a later decision. */
  beat(options: ConsumeOptions): void {
    const nowMs = this.#nowMs()
    if (nowMs - this.#readAtMs < readMs) return
    if (nowMs - this.#countedAtMs >= windowMs) this.#isSettled = false
    this.#readAtMs = nowMs
    this.#reading = this.#read(nowMs, { timeoutMs: options.timeoutMs }).catch(() => {})
  }

  /** Takes this process out of the count. */
  async close(): Promise<void> {
    await this.#reading
    const last = this.#last
    this.#last = undefined
    if (last) await this.#takeOut(last).catch(() => {})
  }

  async #read(nowMs: number, options: ConsumeOptions): Promise<void> {
    const ageMs = nowMs - this.#countedAtMs
    const former = ageMs < windowMs ? this.#last : undefined
    if (ageMs >= renewMs) {
      // Counted twice for a moment, rather than not at all.
      this.#last = await this.#take(1, options)
      this.#countedAtMs = nowMs
      if (former) await this.#takeOut(former)
    }
    const { remaining } = await this.#take(0, options)
    this.#nodes = Math.max(1, presence.limit - remaining)
    this.#isSettled = former !== undefined
  }

  async #take(units: number, options: ConsumeOptions): Promise<Verdict> {
    const verdicts = await this.#store.consume([{ ...this.#check, least: units, most: units }], options)
    return verdicts[0] as Verdict
  }

  #takeOut({ atUs, resetUs }: Verdict): Promise<void> {
    const { key, policy } = this.#check
    const refund: Refund = { key, policy, units: 1, atUs, resetUs }
    return this.#store.refund([refund], { timeoutMs: readMs })
  }
}
