import { MemoryStore } from '../src/memory-store.js'
import type { ResolvedPolicy } from '../src/policy.js'
import type { Check, ConsumeOptions, Refund, Store, Verdict } from '../src/store.js'

type Method = 'consume' | 'peek' | 'refund' | 'reset'

/** A store that several processes share, over a network that the test sets. Its time is that of jest's fake timers. */
export class SharedStore implements Store {
  readonly shared = true
  /** Each call that was sent, in order: of `consume`, least and most of its first check. */
  readonly calls: { readonly method: Method; readonly least?: number; readonly most?: number }[] = []
  /** Milliseconds on the way to the store. */
  outMs: () => number = () => 0
  /** Milliseconds on the way back. */
  backMs: () => number = () => 0
  /** Whether a call fails, before it reaches the store. */
  fails: (method: Method) => boolean = () => false
  /** Whether the answer of a charge is lost. */
  loses: () => boolean = () => false
  /** Units that were charged and of which the answer was lost. */
  lost = 0
  readonly #memory = new MemoryStore({ nowUs: () => Date.now() * 1000 })

  consume(checks: readonly Check[], options?: ConsumeOptions): Promise<readonly Verdict[]> {
    const { least, most } = checks[0] as Check
    const loses = this.loses()
    const charge = async (): Promise<readonly Verdict[]> => {
      const verdicts = await this.#memory.consume(checks, options)
      if (loses) this.lost += (verdicts[0] as Verdict).granted
      return verdicts
    }
    return this.#call('consume', charge, { least, most, loses })
  }

  peek(checks: readonly Check[]): Promise<readonly Verdict[]> {
    return this.#call('peek', () => this.#memory.peek(checks))
  }

  refund(refunds: readonly Refund[]): Promise<void> {
    return this.#call('refund', () => this.#memory.refund(refunds))
  }

  reset(keys: readonly string[]): Promise<void> {
    return this.#call('reset', () => this.#memory.reset(keys))
  }

  async close(): Promise<void> {}

  /** What the store has left for these checks, at once. */
  async remaining(checks: readonly Check[]): Promise<number> {
    const verdicts = await this.#memory.peek(checks.map((check) => ({ ...check, least: 0, most: 0 })))
    return Math.min(...verdicts.map(({ remaining }) => remaining))
  }

  /** How many calls of a method were sent since the last time this was asked. */
  sent(method: Method): number {
    return this.calls.splice(0).filter((call) => call.method === method).length
  }

  async #call<T>(
    method: Method,
    answer: () => Promise<T>,
    { loses = false, ...more }: { loses?: boolean; least?: number; most?: number } = {},
  ): Promise<T> {
    this.calls.push({ method, ...more })
    await pass(this.outMs())
    if (this.fails(method)) throw new Error('ECONNRESET')
    const answered = await answer()
    await pass(this.backMs())
    if (loses) throw new Error('ECONNRESET')
    return answered
  }
}

/** The checks of a request of a key. */
export function checksOf(policies: readonly ResolvedPolicy[], cost = 1, key = 'k'): readonly Check[] {
  return policies.map((policy) => ({ key: `${key}:${policy.keySuffix}`, policy, least: cost, most: cost }))
}

async function pass(ms: number): Promise<void> {
  if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms))
}
