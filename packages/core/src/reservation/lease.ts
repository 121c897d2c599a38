import type { Check, ConsumeOptions, Verdict } from '../store.js'
import { Demand } from './demand.js'
import { type Grant, Grants } from './grants.js'
import type { LeaseHost } from './lease-host.js'
import type { LeaseTerms } from './lease-terms.js'
import { lackingVerdict, spentVerdict } from './lease-verdict.js'
import { type Waiter, Waiters } from './waiters.js'

/**
 * How much of a lease may be left when more is asked for in the background: so little that each call draws nearly all
 * of a lease, which keeps them within 1.1 / max a request.
 */
const topUpShare = 0.08

/** The units that this process holds for one key under the policies of a decision. */
export class Lease {
  readonly checks: readonly Check[]
  /** When units were last asked of it. */
  usedMs: number
  readonly #host: LeaseHost
  #terms: LeaseTerms
  readonly #grants = new Grants()
  /** The newest grant, spent or not: what is told to those who spend. */
  #newest: Grant | undefined
  /** What the store had left at its last answer, by check. */
  #remaining: readonly number[] = []
  /** The most that it may hold beyond what is waited for. */
  #size = 1
  /** For how many processes that was reckoned. */
  #sizedFor: number | undefined
  /** Whether the store failed when it was last asked: it is asked again when nothing is left. */
  #failed = false
  readonly #waiters = new Waiters()
  #asking: Promise<void> | undefined
  /** Whether nobody asks any more: what is on its way goes to those who wait, and the rest is not kept. */
  #ended = false
  /** Whether the store has forgotten what it charged. */
  #dropped = false
  readonly #demand: Demand

  constructor(checks: readonly Check[], terms: LeaseTerms, host: LeaseHost) {
    this.checks = checks
    this.#terms = terms
    this.#host = host
    this.usedMs = host.nowMs()
    this.#demand = new Demand(this.usedMs)
  }

  /** Units that can be spent now. */
  get held(): number {
    this.#leaveEnded(this.#host.nowMs())
    return this.#grants.units
  }

  /** How long units stay when nobody asks for them, in milliseconds. */
  get idleMs(): number {
    return this.#terms.ttlMs / 5
  }

  /**
   * Spends `cost` units, at most `terms.max`; waits for the store only if it holds fewer.
   * @throws SluiceError `SLUICE_STORE_TIMEOUT`; what the store throws
   */
  take(cost: number, terms: LeaseTerms, options: ConsumeOptions): Promise<readonly Verdict[]> {
    const nowMs = this.#host.nowMs()
    this.usedMs = nowMs
    this.#terms = terms
    this.#demand.add(cost)
    this.#leaveEnded(nowMs)
    if (this.#nodes !== this.#sizedFor) {
      this.#resize(nowMs)
      this.#leaveSurplus(nowMs)
    }
    if (this.#waiters.count > 0 || this.#grants.units < cost) {
      const answer = this.#waiters.wait(cost, options.timeoutMs, nowMs)
      this.#start(options)
      return answer
    }
    const verdicts = this.#spend(cost, nowMs)
    if (this.#size > 1 && !this.#failed && this.#isLow) {
      this.#resize(nowMs)
      if (this.#isLow) this.#start(options)
    }
    return Promise.resolve(verdicts)
  }

  /** What {@link Lease.take} would answer if the store answered with these verdicts. */
  peek(cost: number, verdicts: readonly Verdict[]): readonly Verdict[] {
    const { held } = this
    if (held === 0) return verdicts
    return verdicts.map((verdict, i) => {
      const told = this.#withHeld(verdict, i)
      if (told.allowed || told === verdict || held < cost) return told
      return { ...told, allowed: true, granted: cost, remaining: told.remaining - cost, retryUs: 0 }
    })
  }

  /** Gives back all that it holds, and what is on its way to it. */
  async giveBack(): Promise<void> {
    this.#ended = true
    await Promise.all([this.#giveBack(this.held), this.#asking])
  }

  /** Forgets all that it holds, and what is on its way to it, for a store that has forgotten it too. */
  drop(): void {
    this.#ended = true
    this.#dropped = true
    this.#expire(this.#grants.units)
  }

  get #isLow(): boolean {
    return this.#grants.units <= Math.floor(this.#size * topUpShare)
  }

  #start(options: ConsumeOptions): void {
    this.#asking ??= this.#ask(options)
  }

  /** Asks the store until nobody waits any more; without anybody who waits, once. */
  async #ask(options: ConsumeOptions): Promise<void> {
    do {
      const sentMs = this.#host.nowMs()
      const asking = this.#waiters.list()
      const first = asking[0]
      this.#resize(sentMs)
      const least = first ? first.cost - this.#grants.units : 1
      const wanted = Math.max(this.#ended ? 0 : this.#size, this.#waiters.units)
      const most = Math.max(least, wanted - this.#grants.units)
      const checks = this.checks.map((check) => ({ ...check, least, most }))
      const deadlineMs = asking.reduce((latest, waiter) => Math.max(latest, waiter.deadlineMs), 0)
      const timeoutMs = first ? Math.max(1, Math.ceil(deadlineMs - sentMs)) : options.timeoutMs
      let answer: readonly Verdict[] | undefined
      try {
        answer = await this.#host.store.consume(checks, { ...options, timeoutMs, lease: undefined })
      } catch (error) {
        this.#failed = true
        for (const waiter of this.#waiters.dismiss(asking)) waiter.reject(error)
      }
      const nowMs = this.#host.nowMs()
      this.#leaveEnded(nowMs)
      if (answer) this.#answered(answer, sentMs, nowMs, asking)
      this.#settle(asking, answer !== undefined && answer === this.#newest?.verdicts, nowMs)
      if (this.#dropped) this.#expire(this.#grants.units)
      else if (!this.#ended) this.#leaveSurplus(nowMs)
      else await this.#giveBack(this.#grants.units)
    } while (this.#waiters.count > 0)
    this.#asking = undefined
  }

  #answered(verdicts: readonly Verdict[], sentMs: number, nowMs: number, asking: readonly Waiter[]): void {
    const granted = Math.min(...verdicts.filter((_, i) => this.#limits(i)).map((verdict) => verdict.granted))
    this.#remaining = verdicts.map(({ remaining }) => remaining)
    this.#failed = false
    if (granted > 0) {
      this.#receive(verdicts, granted, sentMs, nowMs)
      return
    }
    const cost = asking[0]?.cost
    const denied = verdicts.map((verdict, i) => this.#withHeld(verdict, i))
    // What others asked for, more or less than that, they may still get, or are told exactly.
    const same = asking.filter((other) => other.cost === cost)
    for (const waiter of this.#waiters.dismiss(same)) waiter.resolve(denied)
  }

  /**
   * Serves those who wait, in their order, as far as it can. Those for whom the store was asked get what was charged
   * for them, also if its window has ended on the way; with `denies` they are denied where that is too little.
   */
  #settle(asked: readonly Waiter[], denies: boolean, nowMs: number): void {
    const known = new Set(asked)
    for (const waiter of this.#waiters.list()) {
      const isKnown = known.has(waiter)
      if (!isKnown) this.#leaveSurplus(nowMs)
      const { cost, resolve } = waiter
      const fits = cost <= this.#grants.units
      const lacks = (i: number): boolean => this.#limits(i) && this.#left(i) < cost
      if (!fits && !(denies && isKnown && this.checks.some((_, i) => lacks(i)))) return
      this.#waiters.dismiss([waiter])
      resolve(fits ? this.#spend(cost, nowMs) : this.#lacking(lacks))
    }
  }

  /** What is told to one for whom the newest grant left too little. */
  #lacking(lacks: (i: number) => boolean): readonly Verdict[] {
    return (this.#newest as Grant).verdicts.map((verdict, i) => {
      const told = this.#withHeld(verdict, i)
      return lacks(i) ? lackingVerdict(told) : { ...told, granted: 0 }
    })
  }

  #receive(verdicts: readonly Verdict[], granted: number, sentMs: number, nowMs: number): void {
    const lifeUs = this.checks.map(({ policy }, i) => {
      const verdict = verdicts[i] as Verdict
      const lasts = verdict.granted === 0 || !policy.leaseUs
      return lasts ? Number.POSITIVE_INFINITY : policy.leaseUs(verdict.resetUs, policy.rule)
    })
    const windowEndsMs = sentMs + Math.min(...lifeUs) / 1000
    const endsMs = Math.min(windowEndsMs, sentMs + this.#terms.ttlMs)
    this.#newest = { unspent: granted, endsMs, windowEndsMs, arrivedMs: nowMs, verdicts }
    this.#grants.add(this.#newest)
    this.#host.tally.charged += granted
  }

  #withHeld(verdict: Verdict, i: number): Verdict {
    if (!this.#check(i).policy.countsUnits) return verdict
    return { ...verdict, remaining: verdict.remaining + this.#grants.units }
  }

  /** Spends units that it holds. */
  #spend(cost: number, nowMs: number): readonly Verdict[] {
    this.#host.tally.admitted += cost
    this.#grants.take(cost)
    const { arrivedMs, verdicts } = this.#newest as Grant
    const elapsedUs = Math.floor((nowMs - arrivedMs) * 1000)
    return verdicts.map((verdict, i) => spentVerdict(verdict, cost, this.#left(i), elapsedUs))
  }

  /** What the store had left at its last answer, and this process has. */
  #left(i: number): number {
    const remaining = this.#remaining[i] as number
    return this.#check(i).policy.countsUnits ? remaining + this.#grants.units : remaining
  }

  /** Parts with what may not be held: what was charged for those who left, and what has ended. */
  #leaveSurplus(nowMs: number): void {
    this.#leaveEnded(nowMs)
    void this.#giveBack(this.#grants.units - this.#size)
  }

  #leaveEnded(nowMs: number): void {
    for (let { oldest } = this.#grants; oldest && oldest.endsMs <= nowMs; oldest = this.#grants.oldest) {
      if (oldest.windowEndsMs <= nowMs) this.#expire(oldest.unspent)
      else void this.#giveBack(oldest.unspent)
    }
  }

  #expire(units: number): void {
    this.#host.tally.expired += units
    this.#grants.take(units)
  }

  /** Gives units back to the store, the oldest first; those that it cannot take age there as if they had been spent. */
  async #giveBack(units: number): Promise<void> {
    if (units <= 0) return
    const refunds = this.#grants.refundsOf(units, this.checks)
    this.#grants.take(units)
    const { tally, store } = this.#host
    tally.returned += units
    try {
      await store.refund(refunds, { timeoutMs: this.#terms.ttlMs })
    } catch {
      tally.returned -= units
      tally.expired += units
    }
  }

  /** Reckons how much it may hold: this process's share of what is left, as far as that is needed. */
  #resize(nowMs: number): void {
    const { max, ttlMs } = this.#terms
    // How long the next grant will last is not known until the first of a window has come.
    const lifeMs = Math.max(0, Math.min(ttlMs, (this.#newest?.windowEndsMs ?? 0) - nowMs))
    const perMs = this.#demand.perMs(ttlMs, nowMs)
    // What comes so rarely would be given back before the next asks for it.
    const needed = perMs * this.idleMs < 1 ? 0 : Math.floor(perMs * lifeMs)
    this.#sizedFor = this.#nodes
    this.#size = Math.min(max, Math.max(1, Math.min(needed, this.#share())))
  }

  /** How many processes share the store; undefined while that is not known. */
  get #nodes(): number | undefined {
    return this.#terms.nodes ?? this.#host.nodes()
  }

  /** This process's share of what the store has left; none where the number of processes is not known. */
  #share(): number {
    if (this.#sizedFor === undefined || this.#remaining.length === 0) return 0
    const left = this.#remaining.filter((_, i) => this.#limits(i))
    return Math.floor(Math.min(...left) / (2 * this.#sizedFor))
  }

  /** Whether a check takes units, and refuses where there are none. */
  #limits(i: number): boolean {
    const { policy } = this.#check(i)
    return policy.countsUnits && !policy.shadow
  }

  #check(i: number): Check {
    return this.checks[i] as Check
  }
}
