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
    let used = 0
    for (let place = 0; place <= slices; place++) used += counts[place] as number
    const allowed = cost <= Math.max(0, limit - used)
    if (allowed && cost > 0) {
      counts = counts.with(slices, (counts[slices] as number) + cost)
      used += cost
    }
    const remaining = Math.max(0, limit - used)
    const excess = used - limit
    const resetUs = used > 0 ? endUs(slice, newest(counts), rule) - nowUs : 0
    return {
      allowed,
      remaining,
      retryUs: allowed ? 0 : cost > limit ? -1 : endUs(slice, freeing(counts, excess + cost), rule) - nowUs,
      replenishUs:
        remaining < limit ? endUs(slice, freeing(counts, excess + remaining + 1), rule) - nowUs : 0,
      resetUs,
      delayUs: 0,
      next: allowed && cost > 0 ? { slice, counts } : undefined,
    }
  },
  leaseUs: (resetUs, { windowUs }) => resetUs - windowUs,
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

/** When the slice at a place of a ring stops counting: as the slice after the next `slices` begins. */
function endUs(slice: number, place: number, rule: SlidingWindowRingRule): number {
  return startUs(slice + place + 1, rule)
}

/** The place of the first slice that, with those before it, counts at least so many units. */
function freeing(counts: readonly number[], units: number): number {
  let place = 0
  for (let left = units - (counts[0] as number); left > 0; left -= counts[place] as number) place += 1
  return place
}

/** The place of the newest slice that counts anything; there is one. */
function newest(counts: readonly number[]): number {
  let place = counts.length - 1
  while (counts[place] === 0) place -= 1
  return place
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
