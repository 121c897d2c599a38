/** The numbers of a policy as a model reads them. */
export interface Numbers {
  readonly limit: bigint
  readonly windowUs: bigint
  /** The most units at once; the limit, where an algorithm has no bursts. */
  readonly burst: bigint
  /** Fixed windows only: whether windows begin at multiples of the window. Default true. */
  readonly aligned?: boolean
  /** Rings only: how many slices a window has. */
  readonly slices?: bigint
}

/** A request that was admitted and took units. */
export interface Charge {
  readonly at: bigint
  readonly cost: bigint
  readonly numbers: Numbers
}

/** Units of an earlier charge that were given back, under the policy that charged them. */
export interface Refund {
  readonly at: bigint
  readonly units: bigint
  readonly of: Charge
}

export type History = readonly (Charge | Refund)[]

/** How a key stands at a moment. */
export interface Standing {
  /** The largest cost that would pass. */
  readonly remaining: bigint
  /** Whether the key is as if never used. */
  readonly whole: boolean
  /** Queues only: how long a request of a cost would wait, in whole microseconds, rounded up. */
  delay?(cost: bigint): bigint
}

/**
 * An algorithm by its definition: how a key with this whole history stands at a moment, for a policy. Nothing is kept
 * between questions, and nothing is rounded that the definition does not round.
 */
export type Model = (history: History, at: bigint, numbers: Numbers) => Standing

/** floor(a / b) for b > 0. */
export function floorDiv(a: bigint, b: bigint): bigint {
  return a >= 0n ? a / b : -ceilDiv(-a, b)
}

/** ceil(a / b) for b > 0. */
export function ceilDiv(a: bigint, b: bigint): bigint {
  return a > 0n ? (a + b - 1n) / b : -floorDiv(-a, b)
}

export function min(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}

export function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}
