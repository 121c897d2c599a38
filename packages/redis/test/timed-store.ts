import type { Check, Refund, ResolvedPolicy, Store, Verdict } from '@sluice/core'
import type { Redis } from 'ioredis'
import { script, scriptSha1 } from './timed-script.generated.js'

/** How much longer than the live script the timed one keeps keys, in milliseconds. */
export const extraTtlMs = 3_600_000

/** One part of a call: a decision, or refunds. */
export type Group = { readonly notAfterUs: number } & (
  | { readonly checks: readonly Check[]; readonly charge: boolean }
  | { readonly refunds: readonly Refund[] }
)

const numbersPerCheck = 7

/**
 * Runs the script with a clock of the caller's, several groups in one call.
 * @returns one list of verdicts for each group; undefined for a group that came too late
 */
export async function runTimed(
  client: Redis,
  groups: readonly Group[],
  nowUs: number,
): Promise<(readonly Verdict[] | undefined)[]> {
  const parts = groups.map((group) => ('checks' in group ? group.checks : group.refunds))
  const keys = parts.flat().map(({ key }) => key)
  const policies = [...new Set(parts.flat().map(({ policy }) => policy))]
  const indexOf = (policy: ResolvedPolicy): number => policies.indexOf(policy) + 1
  const numbers = groups.flatMap((group) => {
    if ('refunds' in group) {
      const { notAfterUs, refunds } = group
      const rows = refunds.map(({ policy, units, atUs, resetUs }) => [indexOf(policy), units, atUs, resetUs])
      return [notAfterUs, 2, refunds.length, ...rows.flat()]
    }
    const { notAfterUs, charge, checks } = group
    const rows = checks.map(({ policy, least, most }) => [indexOf(policy), least, most])
    return [notAfterUs, charge ? 1 : 0, checks.length, ...rows.flat()]
  })
  const call = JSON.stringify([policies.map(({ wire }) => wire), numbers])
  const reply = await evaluate(client, [keys.length, ...keys, call, nowUs])
  if (reply.length !== 8 * (1 + numbersPerCheck * keys.length) || reply.readDoubleLE(0) !== nowUs) {
    throw new Error(`The script replied ${reply.length} bytes that begin with ${reply.readDoubleLE(0)}`)
  }
  let at = 8
  return parts.map((checks) => {
    const rows = checks.map(() => {
      const row = Array.from({ length: numbersPerCheck }, (_, i) => reply.readDoubleLE(at + 8 * i))
      at += 8 * numbersPerCheck
      return row as [number, number, number, number, number, number, number]
    })
    if (rows.some(([allowed]) => allowed === -1)) {
      const late = rows.every(
        ([allowed, ...others]) => allowed === -1 && others.every((number) => number === 0),
      )
      if (!late) throw new Error(`A group came late in part: ${JSON.stringify(rows)}`)
      return undefined
    }
    return rows.map(
      ([allowed, granted, remaining, retryUs, replenishUs, resetUs, delayUs]): Verdict => ({
        allowed: allowed === 1,
        granted,
        remaining,
        retryUs,
        replenishUs,
        resetUs,
        delayUs,
        atUs: nowUs,
      }),
    )
  })
}

async function evaluate(client: Redis, args: (string | number)[]): Promise<Buffer> {
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
