import type { Check, Refund, ResolvedPolicy, Verdict } from '@sluice/core'

/** Policies never change, so each is written once. */
const policyJson = new WeakMap<ResolvedPolicy, string>()

/** The script's argument for one group of checks; its form is described at the head of `engine.lua`. */
export function encodeCall(checks: readonly Check[], charge: boolean, notAfterUs: number): string {
  const policies = checks.map(({ policy }) => jsonOf(policy))
  const units = checks.map(({ least, most }, i) => `,${i + 1},${least},${most}`)
  return `[[${policies.join()}],[${notAfterUs},${charge ? 1 : 0},${checks.length}${units.join('')}]]`
}

/** The script's argument to give back charges. */
export function encodeRefund(refunds: readonly Refund[], notAfterUs: number): string {
  const numbers = refunds.map(({ units, atUs, resetUs }, i) => `,${i + 1},${units},${atUs},${resetUs}`)
  return `[[${refunds.map(({ policy }) => jsonOf(policy)).join()}],[${notAfterUs},2,${refunds.length}${numbers.join('')}]]`
}

function jsonOf(policy: ResolvedPolicy): string {
  let json = policyJson.get(policy)
  if (json === undefined) {
    json = JSON.stringify(policy.wire)
    policyJson.set(policy, json)
  }
  return json
}

/** What the script said of one group of checks. */
export interface Reply {
  /** The server's TIME in microseconds. */
  readonly atUs: number
  /** One verdict for each check, or undefined when the call came too late and nothing was read or charged. */
  readonly verdicts: readonly Verdict[] | undefined
}

const numbersPerVerdict = 7

/** Reads the script's reply for a group of `count` checks. */
export function decodeReply(reply: Buffer, count: number): Reply {
  const number = (i: number): number => reply.readDoubleLE(8 * i)
  const atUs = number(0)
  if (number(1) === -1) return { atUs, verdicts: undefined }
  const verdicts = Array.from({ length: count }, (_, check): Verdict => {
    const i = 1 + check * numbersPerVerdict
    return {
      allowed: number(i) === 1,
      granted: number(i + 1),
      remaining: number(i + 2),
      retryUs: number(i + 3),
      replenishUs: number(i + 4),
      resetUs: number(i + 5),
      delayUs: number(i + 6),
      atUs,
    }
  })
  return { atUs, verdicts }
}
