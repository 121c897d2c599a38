import {
  type Check,
  type ConsumeOptions,
  groupBy,
  type Refund,
  SluiceError,
  show,
  type Verdict,
} from '@sluice/core'
import { allOrNothing } from './all-or-nothing.js'
import { Coalescer, type Line } from './coalescer.js'
import { late } from './connection.js'
import type { Topology } from './topology.js'
import type { Group } from './wire.js'

/** The part of a budget in which the answers of several scripts are waited for; the rest is for saying so in time. */
const waitingShare = 0.9

/** Decides checks by the script: those of one slot at once, all or nothing; those of several slots side by side. */
export class Decider {
  readonly #topology: Topology
  readonly #coalescer: Coalescer
  readonly #prefix: string

  /** @param prefix the beginning of every key */
  constructor(line: Line, prefix: string) {
    this.#topology = line.topology
    this.#coalescer = new Coalescer(line)
    this.#prefix = prefix
  }

  /** Decides all checks, all or nothing; charges them, or only tells. */
  decide(checks: readonly Check[], options: ConsumeOptions, charge: boolean): Promise<readonly Verdict[]> {
    const slots = this.#bySlot(checks)
    if (slots) return this.#decideApart(checks, slots, options, charge)
    const verdicts = this.#ask({ mode: charge ? 'charge' : 'peek', parts: checks }, options)
    return this.#topology.sharded && checks.length > 1
      ? this.#decideSplit(checks, options, charge, verdicts)
      : verdicts
  }

  /** Gives charges back; in a Cluster one by one, since each stands for itself. */
  async refund(refunds: readonly Refund[], options: ConsumeOptions): Promise<void> {
    const groups = this.#topology.sharded ? refunds.map((refund) => [refund]) : [refunds]
    await Promise.all(groups.map((parts) => this.#ask({ mode: 'refund', parts }, options)))
  }

  /** The slot in which a key lives. */
  slotOf(key: string): number {
    return this.#topology.slotOf(this.#prefix + key)
  }

  #ask(group: Group, { timeoutMs }: ConsumeOptions): Promise<readonly Verdict[]> {
    const keys = group.parts.map(({ key }) => this.#prefix + key)
    return this.#coalescer.ask(group, keys, timeoutMs)
  }

  /** The verdicts on checks of one slot, which may have to be asked for one by one. */
  async #decideSplit(
    checks: readonly Check[],
    options: ConsumeOptions,
    charge: boolean,
    verdicts: Promise<readonly Verdict[]>,
  ): Promise<readonly Verdict[]> {
    const startedMs = performance.now()
    try {
      return await verdicts
    } catch (error) {
      if (!isSplit(error) || checks.some(isQueue)) throw error
      const timeoutMs = options.timeoutMs - (performance.now() - startedMs)
      const each = checks.map((check) => [check])
      return this.#decideApart(checks, each, { timeoutMs }, charge)
    }
  }

  async #decideApart(
    checks: readonly Check[],
    groups: readonly (readonly Check[])[],
    options: ConsumeOptions,
    charge: boolean,
  ): Promise<readonly Verdict[]> {
    const queue = groups.length > 1 && checks.find(isQueue)
    if (queue) throw crossSlotQueue(queue)
    const ask = {
      decide: (parts: readonly Check[]) => this.#ask({ mode: charge ? 'charge' : 'peek', parts }, options),
      refund: async (refunds: readonly Refund[]) => {
        if (charge) await this.refund(refunds, options)
      },
    }
    const { timeoutMs } = options
    const verdicts = await allOrNothing(groups, ask, waitingShare * timeoutMs, () => late(timeoutMs))
    const places = new Map(groups.flat().map((check, i) => [check, i]))
    const inOrder = verdicts.flat()
    return checks.map((check) => inOrder[places.get(check) as number] as Verdict)
  }

  /** The checks of each slot; undefined where all are of one. */
  #bySlot(checks: readonly Check[]): readonly (readonly Check[])[] | undefined {
    if (!this.#topology.sharded || checks.length === 1) return undefined
    const slots = groupBy(checks, ({ key }) => this.slotOf(key))
    return slots.size === 1 ? undefined : [...slots.values()]
  }
}

/** Whether a policy's charges cannot be given back in general. */
function isQueue({ policy }: Check): boolean {
  return policy.algorithm === 'leaky-bucket'
}

/**
 * Whether a call failed since its keys are on two servers: of a slot that moves, some have moved and some not, and each
 * alone can still be found. Nothing was charged.
 */
function isSplit(error: unknown): boolean {
  const cause = error instanceof SluiceError ? error.cause : undefined
  return cause instanceof Error && /^TRYAGAIN|^Too many Cluster redirections/.test(cause.message)
}

function crossSlotQueue({ policy }: Check): SluiceError {
  return new SluiceError(
    'SLUICE_CROSS_SLOT_QUEUE',
    `The leaky-bucket policy ${show(policy.name)} is decided together with a policy of another key, whose slot in the Cluster is another. Expected another algorithm, or one key for all policies of the decision`,
  )
}
