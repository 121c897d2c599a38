import { type Check, type ConsumeOptions, type Refund, SluiceError, show, type Verdict } from '@sluice/core'
import { allOrNothing, type Group } from './all-or-nothing.js'
import { type Connection, late } from './connection.js'
import { decodeReply, encodeCall, encodeRefund } from './wire.js'

/** The part of a budget in which the answers of several scripts are waited for; the rest is for saying so in time. */
const waitingShare = 0.9

/** Decides checks by the script, slot by slot, each by the clock of the server that runs it. */
export class Decider {
  readonly #connection: Connection
  readonly #prefix: string

  /** @param prefix the beginning of every key */
  constructor(connection: Connection, prefix: string) {
    this.#connection = connection
    this.#prefix = prefix
  }

  /** Decides all checks, all or nothing; charges them, or only tells. */
  async decide(
    checks: readonly Check[],
    options: ConsumeOptions,
    charge: boolean,
  ): Promise<readonly Verdict[]> {
    const groups = this.#bySlot(checks)
    if (groups.length > 1) {
      const queue = checks.find(isQueue)
      if (queue) throw crossSlotQueue(queue)
      return this.#decideApart(checks, groups, options, charge)
    }
    const startedMs = performance.now()
    try {
      return await this.#decideGroup(checks, options, charge)
    } catch (error) {
      if (checks.length === 1 || !isSplit(error) || checks.some(isQueue)) throw error
      const timeoutMs = options.timeoutMs - (performance.now() - startedMs)
      const each = checks.map((check) => [check])
      return this.#decideApart(checks, each, { timeoutMs }, charge)
    }
  }

  /** Gives charges back; in a Cluster one by one, since each stands for itself. */
  async refund(refunds: readonly Refund[], options: ConsumeOptions): Promise<void> {
    const groups = this.#connection.topology.sharded ? refunds.map((refund) => [refund]) : [refunds]
    await Promise.all(
      groups.map((group) => this.#run(group, options, (notAfterUs) => encodeRefund(group, notAfterUs))),
    )
  }

  /** The slot in which a key lives. */
  slotOf(key: string): number {
    return this.#connection.topology.slotOf(this.#prefix + key)
  }

  #decideGroup(group: Group, options: ConsumeOptions, charge: boolean): Promise<readonly Verdict[]> {
    return this.#run(group, options, (notAfterUs) => encodeCall(group, charge, notAfterUs))
  }

  async #decideApart(
    checks: readonly Check[],
    groups: readonly Group[],
    options: ConsumeOptions,
    charge: boolean,
  ): Promise<readonly Verdict[]> {
    const ask = {
      decide: (group: Group) => this.#decideGroup(group, options, charge),
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

  #bySlot(checks: readonly Check[]): readonly Group[] {
    const { topology } = this.#connection
    if (!topology.sharded || checks.length === 1) return [checks]
    const groups = new Map<number, Check[]>()
    for (const check of checks) {
      const slot = this.slotOf(check.key)
      const group = groups.get(slot)
      if (group) group.push(check)
      else groups.set(slot, [check])
    }
    return groups.size === 1 ? [checks] : [...groups.values()]
  }

  /** Runs the script for parts of one slot. */
  async #run(
    parts: readonly { readonly key: string }[],
    { timeoutMs }: ConsumeOptions,
    encode: (notAfterUs: number) => string,
  ): Promise<readonly Verdict[]> {
    const { topology } = this.#connection
    const keys = parts.map(({ key }) => this.#prefix + key)
    const slot = topology.slotOf(keys[0] as string)
    const deadlineMs = performance.now() + timeoutMs
    // A server whose clock is unknown or was set forward finds the first call late; its reply tells its clock, and the
    // second fits.
    do {
      const reply = await this.#connection.run(keys, () => {
        const leftUs = Math.floor((deadlineMs - performance.now()) * 1000)
        // A call that waited for the connection for too long is not sent at all.
        if (leftUs <= 0) throw late(timeoutMs)
        return encode(topology.clockOf(slot).nowUs() + leftUs)
      })
      const { atUs, verdicts } = decodeReply(reply, parts.length)
      // Asked for again: a slot that has moved has another master by now.
      topology.clockOf(slot).heard(atUs)
      if (verdicts) return verdicts
    } while (performance.now() < deadlineMs)
    throw late(timeoutMs)
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
