import { badOption } from '../../errors.js'
import type { AlgorithmDefinition, Rule } from '../algorithm.js'
import { mulDiv } from '../arithmetic.js'

/** The option of `sliding-window-ring`. */
export interface SlidingWindowRingOptions {
  /**
   * How many slices a window is counted in, 2 to 1000 and at most one a microsecond. Default 30. More slices serve
   * closer to the limit and take 4 bytes a slice. Only `sliding-window-ring`.
   */
  slices?: number
}

export interface SlidingWindowRingRule extends Rule {
  readonly limit: number
  readonly windowUs: number
  readonly slices: number
}

/** The newest slice since the epoch, and the units of it and of the `slices` before it, oldest first. */
export interface SlidingWindowRingState {
  readonly slice: number
  readonly counts: readonly number[]
}

/**
 * Counts a sliding window in slices, the oldest one whole although only part of it is still inside: what it counts is
 * never less than what the window holds.
 * Bound: the limit exactly, in any window; memory is the same at any limit. Sustained at least
 * slices / (slices + 1) of the limit.
 */
export const slidingWindowRing: AlgorithmDefinition<SlidingWindowRingRule, SlidingWindowRingState> = {
  code: 'sr',
  options: ['slices'],
  resolve({ limit, windowUs, options }) {
    const { slices = 30 } = options
    if (
      !Number.isInteger(slices) ||
      (slices as number) < 2 ||
      (slices as number) > Math.min(1000, windowUs)
    ) {
      throw badOption(
        'slices',
        slices,
        'a whole number from 2 to 1000, at most one a microsecond of the window',
      )
    }
    return {
      burst: limit,
      limit,
      windowUs,
      slices: slices as number,
      keyDetail: `-${slices}`,
      wire: [slices as number],
    }
  },
  step(state, nowUs, cost, rule) {
    const { limit, slices } = rule
    const ring = advance(state, nowUs, rule)
    const { slice } = ring
    let { counts } = ring
    let used = counts.reduce((sum, count) => sum + count, 0)
    const allowed = cost <= Math.max(0, limit - used)
    if (allowed && cost > 0) {
      counts = counts.with(slices, (counts[slices] as number) + cost)
      used += cost
    }
    const remaining = Math.max(0, limit - used)
    // A slice stops counting when the slice after the next `slices` begins.
    const endUs = (place: number): number => startUs(slice + place + 1, rule) - nowUs
    const waitUs = (units: number): number => {
      let left = used
      return endUs(
        counts.findIndex((count) => {
          left -= count
          return left + units <= limit
        }),
      )
    }
    return {
      allowed,
      remaining,
      retryUs: allowed ? 0 : cost > limit ? -1 : waitUs(cost),
      replenishUs: remaining < limit ? waitUs(remaining + 1) : 0,
      resetUs: used > 0 ? endUs(counts.findLastIndex((count) => count > 0)) : 0,
      delayUs: 0,
      next: allowed && cost > 0 ? { slice, counts } : undefined,
    }
  },
  refund(state, nowUs, { units, atUs, resetUs }, rule) {
    const { slice, counts } = advance(state, nowUs, rule)
    const place = sliceOf(atUs + resetUs, rule) - slice - 1
    const count = counts[place] ?? 0
    return count === 0 ? undefined : { slice, counts: counts.with(place, Math.max(0, count - units)) }
  },
}

function sliceOf(us: number, { slices, windowUs }: SlidingWindowRingRule): number {
  return slices * Math.floor(us / windowUs) + mulDiv(slices, us % windowUs, windowUs)
}

/** The first microsecond of a slice. */
function startUs(slice: number, { slices, windowUs }: SlidingWindowRingRule): number {
  const place = slice % slices
  return ((slice - place) / slices) * windowUs + windowUs - mulDiv(slices - place, windowUs, slices)
}

/** The ring with the current slice as its newest, the slices that passed since at 0; time never runs backwards. */
function advance(
  state: SlidingWindowRingState | undefined,
  nowUs: number,
  rule: SlidingWindowRingRule,
): SlidingWindowRingState {
  const { slices, windowUs } = rule
  const slice = sliceOf(nowUs, rule)
  if (!state || state.slice < slice - slices || startUs(state.slice, rule) > nowUs + windowUs) {
    return { slice, counts: Array<number>(slices + 1).fill(0) }
  }
  const passed = Math.max(0, slice - state.slice)
  if (passed === 0) return state
  return { slice, counts: [...state.counts.slice(passed), ...Array<number>(passed).fill(0)] }
}
