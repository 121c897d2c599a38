import type { Check, Store, Verdict } from '@sluice/core'
import type { Redis } from 'ioredis'
import { script, scriptSha1 } from './timed-script.generated.js'

/** How much longer than the live script the timed one keeps keys, in milliseconds. */
export const extraTtlMs = 3_600_000

/** One decision of a call. */
export interface Group {
  readonly checks: readonly Check[]
  readonly charge: boolean
  readonly notAfterUs: number
}

const numbersPerCheck = 7

/**
 * Runs the script with a clock of the caller's, several decisions in one call.
 * @returns one list of verdicts for each group; undefined for a group that came too late
 */
export async function runTimed(
  client: Redis,
  groups: readonly Group[],
  nowUs: number,
): Promise<(readonly Verdict[] | undefined)[]> {
  const checks = groups.flatMap((group) => group.checks)
  const policies = [...new Set(checks.map(({ policy }) => policy))]
  const numbers = groups.flatMap(({ checks, charge, notAfterUs }) => [
    notAfterUs,
    charge ? 1 : 0,
    checks.length,
    ...checks.flatMap(({ policy, least, most }) => [policies.indexOf(policy) + 1, least, most]),
  ])
  const call = JSON.stringify([policies.map(({ wire }) => wire), numbers])
  const reply = await evaluate(client, [checks.length, ...checks.map(({ key }) => key), call, nowUs])
  if (reply.length !== 8 * (1 + numbersPerCheck * checks.length) || reply.readDoubleLE(0) !== nowUs) {
    throw new Error(`The script replied ${reply.length} bytes that begin with ${reply.readDoubleLE(0)}`)
  }
  let at = 8
  return groups.map(({ checks }) => {
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
    return this.#decide(checks, true)
  }

  peek(checks: readonly Check[]): Promise<readonly Verdict[]> {
    return this.#decide(checks, false)
  }

  async close(): Promise<void> {}

  async #decide(checks: readonly Check[], charge: boolean): Promise<readonly Verdict[]> {
    const keyed = checks.map((check) => ({ ...check, key: this.#prefix + check.key }))
    const nowUs = this.#nowUs()
    const [verdicts] = await runTimed(this.#client, [{ checks: keyed, charge, notAfterUs: nowUs }], nowUs)
    return verdicts as readonly Verdict[]
  }
}
