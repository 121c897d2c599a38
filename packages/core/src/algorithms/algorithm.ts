/**
 * The contract of a rate-limiting algorithm.
 *
 * An algorithm is a pure step: state and time in, answer and next state out. It reads no clock and does no I/O; a
 * store only has to run it atomically. The same step is written once more in Lua beside it, for Redis.
 */
export interface AlgorithmDefinition<Params extends Rule = Rule, State = unknown> {
  /** Two letters that name the algorithm in keys and in the Redis script. */
  readonly code: string
  /** The options of a policy, beside those every policy has, that mean something to this algorithm. */
  readonly options: readonly string[]
  /**
   * Turns a policy's numbers into the constants of the step.
   * @throws SluiceError when an option of this algorithm is out of range.
   */
  resolve(numbers: PolicyNumbers): Params
  /**
   * Decides one request of `cost` units at `nowUs`, or, with cost 0, tells how things stand.
   * `state` is what an earlier step returned, or undefined for a key that was never used.
   */
  step(state: State | undefined, nowUs: number, cost: number, params: Params): Step<State>
  /**
   * The state once units of an earlier charge are given back: never above full, and never into a later window than
   * the one that was charged. Undefined when there is nothing left to give back to.
   */
  refund(state: State | undefined, nowUs: number, charge: Charge, params: Params): State | undefined
  /**
   * How long after its charge a leased unit may be spent so that the bound stands, in microseconds: until the window or
   * slice ends in which it was charged. Absent where units cannot be leased.
   * @param resetUs of the step that charged
   */
  leaseUs?(resetUs: number, params: Params): number
  /** How a state fits into a few numbers, for a store that holds many. Absent where it does not. */
  readonly packing?: Packing<State>
}

/** The numbers of many states, in one piece of memory: that of `narrow` begins at `2 * at`, that of `wide` at `at + 1`. */
export interface Numbers {
  /** Whole numbers below 2^32; two for each state. */
  readonly narrow: Uint32Array
  /** Whole numbers below 2^53; two for each state. */
  readonly wide: Float64Array
}

/** Writes the numbers of a state at a place, and reads them there. */
export interface Packing<State = unknown> {
  pack(state: State, numbers: Numbers, at: number): void
  unpack(numbers: Numbers, at: number): State
}

/** An earlier charge, some units of which are given back. */
export interface Charge {
  /** Units to give back, at most those charged. */
  readonly units: number
  /** When it was charged, by the store's clock. */
  readonly atUs: number
  /** `resetUs` of the step that charged. */
  readonly resetUs: number
}

/** What an algorithm is given of a policy: checked numbers, and its own options as the user wrote them. */
export interface PolicyNumbers {
  /** Units per window, 1 to 10^9. */
  readonly limit: number
  /** Length of the window in microseconds. */
  readonly windowUs: number
  /** The policy as the user wrote it, for the options named in `options`. */
  readonly options: Readonly<Record<string, unknown>>
}

/** The constants every algorithm resolves to; each adds its own. */
export interface Rule {
  /** The most units that can pass at once: the limit, or a bucket's burst. Higher costs can never pass. */
  readonly burst: number
  /** The longest that an accepted request may have to wait, in microseconds; default 0. */
  readonly longestDelayUs?: number
  /** What of its constants a state depends on, beside the window: the end of the policy's keys. Default: nothing. */
  readonly keyDetail?: string
  /** What the Lua step is given, in the order in which it reads them. */
  readonly wire: readonly number[]
}

/** The answer of one step. All times are whole microseconds, counted from the time of the step. */
export interface Step<State = unknown> {
  readonly allowed: boolean
  /** The largest cost that would pass now, after this request if it is allowed. */
  readonly remaining: number
  /** Until this same cost could pass if nobody else came; 0 when allowed, -1 when it never can. */
  readonly retryUs: number
  /** Until `remaining` would grow; 0 when it is whole. */
  readonly replenishUs: number
  /** Until the key would be as if never used; 0 when it already is. */
  readonly resetUs: number
  /** How long an allowed request must wait before it may run. */
  readonly delayUs: number
  /** The state after the charge. Only for an allowed step with a cost above 0; else it must not be stored. */
  readonly next: State | undefined
}
