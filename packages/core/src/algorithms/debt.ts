import type { Charge, Packing, Step } from './algorithm.js'
import type { BucketRule } from './bucket.js'

/**
 * A debt in time, the state of `gcra` and `leaky-bucket`: the moment at which it is paid, in whole microseconds and a
 * remainder in steps with the unit it was counted in, and `longUs` of the policy that stored it
 * (see {@link BucketRule}).
 */
export interface DebtState {
  readonly paidUs: number
  readonly steps: number
  readonly unit: number
  readonly longUs: number
}

export const packedDebt: Packing<DebtState> = {
  pack({ paidUs, steps, unit, longUs }, { wide, narrow }, at) {
    wide[at + 1] = paidUs
    wide[at + 2] = longUs
    narrow[2 * at] = steps
    narrow[2 * at + 1] = unit
  },
  unpack: ({ wide, narrow }, at) => ({
    paidUs: wide[at + 1] as number,
    steps: narrow[2 * at] as number,
    unit: narrow[2 * at + 1] as number,
    longUs: wide[at + 2] as number,
  }),
}

/** How far ahead of now the debt is paid: whole microseconds, and steps. */
function readDebt(
  state: DebtState | undefined,
  nowUs: number,
  { stepsPerUs, fullSteps, unit, windowUs }: BucketRule,
): { aheadUs: number; steps: number } {
  if (state) {
    // A remainder in another unit is rounded up: read in the wrong unit it could admit too much.
    const known = state.unit === unit || state.steps === 0
    const aheadUs = state.paidUs - nowUs + (known ? 0 : 1)
    const steps = known ? state.steps : 0
    const overUs = aheadUs - windowUs
    // A debt beyond what this policy could store may be that of a larger burst, and stands.
    if (aheadUs >= 0 && (overUs * stepsPerUs + steps <= fullSteps || overUs < state.longUs)) {
      return { aheadUs, steps }
    }
  }
  return { aheadUs: 0, steps: 0 }
}

/** The whole microseconds in so many steps, rounded down. */
function wholeUs(steps: number, { stepsPerUs }: BucketRule): number {
  return Math.floor(steps / stepsPerUs)
}

/** Decides a request by the debt that it would make. */
export function stepDebt(
  state: DebtState | undefined,
  nowUs: number,
  cost: number,
  rule: BucketRule,
): Step<DebtState> {
  const { burst, stepsPerUnit, stepsPerUs, fullSteps, unit, longUs } = rule
  let { aheadUs, steps } = readDebt(state, nowUs, rule)
  let debt = Math.min(aheadUs * stepsPerUs + steps, fullSteps)
  const allowed = debt + cost * stepsPerUnit <= fullSteps
  if (allowed && cost > 0) {
    debt += cost * stepsPerUnit
    steps = debt % stepsPerUs
    aheadUs = (debt - steps) / stepsPerUs
  }
  const remaining = Math.floor((fullSteps - debt) / stepsPerUnit)
  const freeSteps = fullSteps - steps
  return {
    allowed,
    remaining,
    retryUs: allowed ? 0 : cost > burst ? -1 : aheadUs - wholeUs(freeSteps - cost * stepsPerUnit, rule),
    replenishUs: remaining < burst ? aheadUs - wholeUs(freeSteps - (remaining + 1) * stepsPerUnit, rule) : 0,
    resetUs: steps > 0 ? aheadUs + 1 : aheadUs,
    delayUs: 0,
    next: allowed && cost > 0 ? { paidUs: nowUs + aheadUs, steps, unit, longUs } : undefined,
  }
}

/**
 * Gives back units of a charge, of what it still owes: the oldest debt is paid first. With `last`, for a queue, only
 * if nobody came since, since a place in the middle cannot be given to another.
 */
export function refundDebt(
  state: DebtState | undefined,
  nowUs: number,
  { units, atUs, resetUs }: Charge,
  rule: BucketRule,
  last = false,
): DebtState | undefined {
  const { stepsPerUnit, stepsPerUs, unit } = rule
  let { aheadUs, steps } = readDebt(state, nowUs, rule)
  const leftUs = atUs + resetUs - nowUs
  if (!state || leftUs <= 0 || aheadUs + steps === 0) return undefined
  if (last && leftUs !== (steps > 0 ? aheadUs + 1 : aheadUs)) return undefined
  const owed = Math.min(leftUs * stepsPerUs, units * stepsPerUnit)
  // In microseconds and steps apart: the debt of a larger burst may pass 2^53 steps.
  aheadUs -= Math.floor(owed / stepsPerUs)
  steps -= owed % stepsPerUs
  if (steps < 0) {
    aheadUs -= 1
    steps += stepsPerUs
  }
  if (aheadUs < 0) [aheadUs, steps] = [0, 0]
  return { paidUs: nowUs + aheadUs, steps, unit, longUs: state.longUs }
}
