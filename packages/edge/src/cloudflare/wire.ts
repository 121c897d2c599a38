import {
  type Check,
  type PolicyData,
  policyFrom,
  type Refund,
  type ResolvedPolicy,
  remembering,
  type Verdict,
} from '@sluice/core'

/** What a store asks of an object. */
export type Question =
  | { readonly method: 'consume' | 'peek'; readonly checks: readonly Check[] }
  | { readonly method: 'refund'; readonly refunds: readonly Refund[] }
  | { readonly method: 'reset'; readonly keys: readonly string[] }

/** A question that is good up to a moment of the object's clock. */
export type Call = Question & { readonly notAfterUs: number }

/** What an object answers. */
export interface Answer {
  /** Of `consume` and `peek`. */
  readonly verdicts?: readonly Verdict[]
  /** The object's clock, where the call came too late to do anything. */
  readonly lateAtUs?: number
  /** Why it could not be done. */
  readonly error?: string
}

const encoded = new WeakMap<ResolvedPolicy, string>()
/** Limits that depend on the request make a policy each. */
const mostDecoded = 1000
const decodePolicy = remembering(mostDecoded, (text: string) => policyFrom(JSON.parse(text) as PolicyData))

/** A call as text: a policy is the options that make it again on the other side. */
export function encodeCall(call: Call): string {
  return JSON.stringify(call, (name, value) => (name === 'policy' ? encodePolicy(value) : value))
}

/** @throws for text that no {@link encodeCall} wrote */
export function decodeCall(text: string): Call {
  return JSON.parse(text, (name, value) => (name === 'policy' ? decodePolicy(value) : value))
}

function encodePolicy(policy: ResolvedPolicy): string {
  let text = encoded.get(policy)
  if (text === undefined) {
    text = JSON.stringify(policy.data)
    encoded.set(policy, text)
  }
  return text
}
