import type { Check, Refund, Store, Verdict } from '@sluice/core'
import type { Redis } from 'ioredis'
import { decodeReply, encodeCall, type SentGroup } from '../src/wire.js'
import { script, scriptSha1 } from './timed-script.generated.js'

/** How much longer than the live script the timed one keeps keys, in milliseconds. */
export const extraTtlMs = 3_600_000

/** One part of a call: a decision, or refunds. */
export type Group = { readonly notAfterUs: number } & (
  | { readonly checks: readonly Check[]; readonly charge: boolean }
  | { readonly refunds: readonly Refund[] }
)

const numbersPerPart = 5

/**
 * Runs the script with a clock of the caller's, several groups in one call.
 * @returns one list of verdicts for each group; undefined for a group that came too late
 */
export async function runTimed(
  client: Redis,
  groups: readonly Group[],
  nowUs: number,
): Promise<readonly (readonly Verdict[] | undefined)[]> {
  const sent = groups.map((group): SentGroup => {
    const { notAfterUs } = group
    if ('refunds' in group) {
      const { refunds: parts } = group
      return { group: { mode: 'refund', parts }, keys: parts.map(({ key }) => key), notAfterUs }
    }
    const { checks: parts, charge } = group
    return {
      group: { mode: charge ? 'charge' : 'peek', parts },
      keys: parts.map(({ key }) => key),
      notAfterUs,
    }
  })
  const { keys, argument } = encodeCall(sent)
  const reply = await evaluate(client, [keys.length, ...keys, Buffer.from(argument), nowUs])
  const counts = sent.map(({ keys }) => keys.length)
  const parts = counts.reduce((sum, count) => sum + count, 0)
  const { atUs, verdicts } = decodeReply(reply, sent)
  if (reply.length !== 8 * (1 + numbersPerPart * parts) || atUs !== nowUs) {
    throw new Error(`The script replied ${reply.length} bytes that begin with ${atUs}`)
  }
  let at = 8
  for (const [i, count] of counts.entries()) {
    const end = at + 8 * numbersPerPart * count
    const late: boolean[] = []
    for (; at < end; at += 8 * numbersPerPart) {
      const [outcome, ...others] = Array.from({ length: numbersPerPart }, (_, n) =>
        reply.readDoubleLE(at + 8 * n),
      )
      late.push(outcome === -1 && others.every((number) => number === 0))
    }
    if (late.some((isLate) => isLate !== (verdicts[i] === undefined))) {
      throw new Error(`A group came late in part: ${JSON.stringify(late)}`)
    }
  }
  return verdicts
}

async function evaluate(client: Redis, args: (string | number | Buffer)[]): Promise<Buffer> {
  try {
    return (await client.callBuffer('EVALSHA', scriptSha1, ...args)) as Buffer
  } catch (error) {
    if (!(error as Error).message.startsWith('NOSCRIPT')) throw error
    return (await client.callBuffer('EVAL', script, ...args)) as Buffer
  }
}

/** A store that counts in Redis by a clock of the caller's. */
export class TimedStore implements Store {
  readonly shared = true
  readonly #client: Redis
  readonly #prefix: string
  readonly #nowUs: () => number

  constructor(client: Redis, prefix: string, nowUs: () => number) {
    this.#client = client
    this.#prefix = prefix
    this.#nowUs = nowUs
  }

  consume(checks: readonly Check[]): Promise<readonly Verdict[]> {
    return this.#run({ checks: this.#keyed(checks), charge: true })
  }

  peek(checks: readonly Check[]): Promise<readonly Verdict[]> {
    return this.#run({ checks: this.#keyed(checks), charge: false })
  }

  async refund(refunds: readonly Refund[]): Promise<void> {
    await this.#run({ refunds: this.#keyed(refunds) })
  }

  async reset(keys: readonly string[]): Promise<void> {
    await this.#client.del(...keys.map((key) => this.#prefix + key))
  }

  async close(): Promise<void> {}

  #keyed<Part extends { readonly key: string }>(parts: readonly Part[]): Part[] {
    return parts.map((part) => ({ ...part, key: this.#prefix + part.key }))
  }

  async #run(
    group: { checks: Check[]; charge: boolean } | { refunds: Refund[] },
  ): Promise<readonly Verdict[]> {
    const nowUs = this.#nowUs()
    const [verdicts] = await runTimed(this.#client, [{ ...group, notAfterUs: nowUs }], nowUs)
    return verdicts as readonly Verdict[]
  }
}
