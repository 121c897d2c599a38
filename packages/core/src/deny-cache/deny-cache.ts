import { CheckIndex } from '../check-index.js'
import type { Check, ConsumeOptions, Refund, Store, Verdict } from '../store.js'

/** A denial of the store's. */
interface Denial {
  readonly cost: number
  readonly verdicts: readonly Verdict[]
  readonly sentMs: number
  readonly arrivedMs: number
  /** The longest wait of those that deny, counted from when it was sent; Infinity if no wait helps. */
  readonly waitMs: number
}

/** How many keys' denials are held, in two halves of which the older is dropped when the newer is full. */
const maxHeld = 16_384
/** Denials of one key and its policies that differ in cost. */
const maxCosts = 8

/**
 * Repeats denials without asking the store again: a key that was denied is denied until the longest wait of the
 * policies that denied is over, or until `denyStaleMs` have passed, whichever comes first. So the store hears of a
 * denied key, cost and policies at most once in each such span, beside calls that were on their way already.
 *
 * A higher cost that could ever fit is denied too, with that wait as the least it may be. The wait is counted from when
 * the store was asked, and what is told to the client from when it answered: who waits as told is never early. Changes
 * that this process makes to the key end it; those of others are seen within `denyStaleMs`.
 */
export class DenyCache implements Store {
  readonly shared = true
  readonly #store: Store
  readonly #nowMs: () => number
  #newer = new CheckIndex<Denial[]>()
  #older = new CheckIndex<Denial[]>()
  /** Counts what may let denied keys pass, so that answers from before are not remembered. */
  #changes = 0

  /** @param nowMs a monotonic clock in milliseconds; for tests */
  constructor(store: Store, nowMs: () => number = () => performance.now()) {
    this.#store = store
    this.#nowMs = nowMs
  }

  consume(checks: readonly Check[], options: ConsumeOptions): Promise<readonly Verdict[]> {
    const { denyStaleMs = 0 } = options
    if (denyStaleMs === 0) return this.#store.consume(checks, options)
    const nowMs = this.#nowMs()
    const cost = (checks[0] as Check).least
    const denials = this.#newer.find(checks) ?? this.#older.find(checks)
    const denial = denials && holding(denials, checks, cost, nowMs, denyStaleMs)
    return denial ? Promise.resolve(repeat(denial, nowMs)) : this.#ask(checks, options, nowMs)
  }

  peek(checks: readonly Check[], options: ConsumeOptions): Promise<readonly Verdict[]> {
    return this.#store.peek(checks, options)
  }

  async refund(refunds: readonly Refund[], options: ConsumeOptions): Promise<void> {
    try {
      await this.#store.refund(refunds, options)
    } finally {
      this.#forget(refunds.map(({ key }) => key))
    }
  }

  async reset(keys: readonly string[], options: ConsumeOptions): Promise<void> {
    try {
      await this.#store.reset(keys, options)
    } finally {
      this.#forget(keys)
    }
  }

  close(): Promise<void> {
    return this.#store.close()
  }

  async #ask(checks: readonly Check[], options: ConsumeOptions, sentMs: number): Promise<readonly Verdict[]> {
    const changes = this.#changes
    const verdicts = await this.#store.consume(checks, options)
    const waitMs = waitOf(checks, verdicts)
    if (waitMs > 0 && changes === this.#changes) {
      const { least: cost } = checks[0] as Check
      this.#remember(checks, { cost, verdicts, sentMs, arrivedMs: this.#nowMs(), waitMs })
    }
    return verdicts
  }

  #remember(checks: readonly Check[], denial: Denial): void {
    const denials = this.#newer.find(checks)
    if (denials) {
      const place = denials.findIndex(({ cost }) => cost === denial.cost)
      if (place >= 0) denials.splice(place, 1)
      denials.unshift(denial)
      denials.length = Math.min(denials.length, maxCosts)
      return
    }
    if (this.#newer.size >= maxHeld / 2) {
      this.#older = this.#newer
      this.#newer = new CheckIndex()
    }
    this.#newer.add(checks, [denial])
  }

  #forget(keys: readonly string[]): void {
    this.#changes += 1
    this.#newer.take(keys)
    this.#older.take(keys)
  }
}

/** The denial that holds for a cost: its own, else of those of a lower cost the one that lasts longest. */
function holding(
  denials: readonly Denial[],
  checks: readonly Check[],
  cost: number,
  nowMs: number,
  denyStaleMs: number,
): Denial | undefined {
  let found: Denial | undefined
  for (const denial of denials) {
    if (denial.cost > cost || nowMs >= denial.sentMs + Math.min(denial.waitMs, denyStaleMs)) continue
    if (denial.cost === cost) return denial
    const holds = denial.waitMs === Number.POSITIVE_INFINITY || couldFit(checks, cost)
    if (holds && (!found || endMs(denial) > endMs(found))) found = denial
  }
  return found
}

function endMs({ sentMs, waitMs }: Denial): number {
  return sentMs + waitMs
}

function couldFit(checks: readonly Check[], cost: number): boolean {
  return checks.every(({ policy }) => policy.shadow || !policy.countsUnits || cost <= policy.burst)
}

/** The longest wait of the policies that deny, in milliseconds; 0 if none does, Infinity if no wait helps. */
function waitOf(checks: readonly Check[], verdicts: readonly Verdict[]): number {
  let longestUs = 0
  for (let i = 0; i < checks.length; i++) {
    const { allowed, failed, retryUs } = verdicts[i] as Verdict
    if (allowed || failed || (checks[i] as Check).policy.shadow) continue
    longestUs = Math.max(longestUs, retryUs < 0 ? Number.POSITIVE_INFINITY : retryUs)
  }
  return longestUs / 1000
}

/** The verdicts again, at a later time of the same clock. */
function repeat({ verdicts, arrivedMs }: Denial, nowMs: number): readonly Verdict[] {
  const elapsedUs = Math.floor((nowMs - arrivedMs) * 1000)
  return verdicts.map((verdict) => later(verdict, elapsedUs))
}

function later(verdict: Verdict, elapsedUs: number): Verdict {
  const { failed, remaining, retryUs, replenishUs, resetUs, atUs } = verdict
  // Its wait is over, and that of another policy is not.
  const allowed = verdict.allowed || (retryUs > 0 && retryUs <= elapsedUs)
  return {
    ...(failed && { failed }),
    source: 'deny-cache',
    allowed,
    granted: 0,
    remaining,
    retryUs: allowed || retryUs < 0 ? Math.min(retryUs, 0) : retryUs - elapsedUs,
    replenishUs: left(replenishUs, elapsedUs),
    resetUs: left(resetUs, elapsedUs),
    delayUs: 0,
    atUs: atUs + elapsedUs,
  }
}

/** What is left of a wait: what has not been whole is not called so, since how much has come is not known. */
function left(waitUs: number, elapsedUs: number): number {
  return waitUs > 0 ? Math.max(1, waitUs - elapsedUs) : waitUs
}
