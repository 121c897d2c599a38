import { badOption } from '../../errors.js'
import type { AlgorithmDefinition, Rule } from '../algorithm.js'
import { mulDiv } from '../arithmetic.js'

/** The option of `sliding-window-ring`. */
export interface SlidingWindowRingOptions {
  /**
   * How many slices a window is counted in, 2 to 1000 and at most one a microsecond. Default 30. More slices serve
   * closer to the limit and take 4 bytes in Redis for each slice in use. Only `sliding-window-ring`.
   */
  slices?: number
}

export interface SlidingWindowRingRule extends Rule {
  readonly limit: number
  readonly windowUs: number
  readonly slices: number
}

/**
 * The newest slice since the epoch at a charge or refund, then the units of each from the oldest that counts any up to
 * it: one array, as long as what is in use.
 */
export type SlidingWindowRingState = readonly [slice: number, ...counts: number[]]

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
    const { limit } = rule
    let ring = standing(state, nowUs, rule)
    const slice = Math.max(ring[0], sliceOf(nowUs, rule))
    let first = firstOf(ring, slice, rule)
    let used = 0
    for (let at = first; at < ring.length; at++) used += ring[at] as number
    const allowed = cost <= Math.max(0, limit - used)
    const charged = allowed && cost > 0
    if (charged) {
      ring = advance(ring, first, slice, cost)
      first = 1
      used += cost
    }
    const remaining = Math.max(0, limit - used)
    const excess = used - limit
    return {
      allowed,
      remaining,
      retryUs: allowed
        ? 0
        : cost > limit
          ? -1
          : endUs(ring, freeing(ring, first, excess + cost), rule) - nowUs,
      replenishUs:
        remaining < limit ? endUs(ring, freeing(ring, first, excess + remaining + 1), rule) - nowUs : 0,
      resetUs: used > 0 ? endUs(ring, newest(ring), rule) - nowUs : 0,
      delayUs: 0,
      next: charged ? ring : undefined,
    }
  },
  leaseUs: (resetUs, { windowUs }) => resetUs - windowUs,
  refund(state, nowUs, { units, atUs, resetUs }, rule) {
    const ring = standing(state, nowUs, rule)
    const slice = Math.max(ring[0], sliceOf(nowUs, rule))
    const first = firstOf(ring, slice, rule)
    const at = placeOf(ring, sliceOf(atUs + resetUs, rule) - rule.slices - 1)
    const count = at < first ? 0 : (ring[at] ?? 0)
    if (count === 0) return undefined
    return advance(ring.with(at, Math.max(0, count - units)) as [number, ...number[]], first, slice, 0)
  },
}

type Ring = SlidingWindowRingState

/** The ring of a key that was never used. */
const unused: Ring = [0]

/** The ring that counts now: time never runs backwards, and one of more than a window ahead is none. */
function standing(state: Ring | undefined, nowUs: number, rule: SlidingWindowRingRule): Ring {
  return state && startUs(state[0], rule) <= nowUs + rule.windowUs ? state : unused
}

function sliceOf(us: number, { slices, windowUs }: SlidingWindowRingRule): number {
  return slices * Math.floor(us / windowUs) + mulDiv(slices, us % windowUs, windowUs)
}

/** The first microsecond of a slice. */
function startUs(slice: number, { slices, windowUs }: SlidingWindowRingRule): number {
  const place = slice % slices
  return ((slice - place) / slices) * windowUs + windowUs - mulDiv(slices - place, windowUs, slices)
}

/** The place of a slice in a ring, which may lie outside of it. */
function placeOf(ring: Ring, slice: number): number {
  return ring.length - 1 - (ring[0] - slice)
}

/** The place of the oldest slice that still counts when another one is the newest; the ring's length if none does. */
function firstOf(ring: Ring, slice: number, { slices }: SlidingWindowRingRule): number {
  return Math.min(ring.length, Math.max(1, placeOf(ring, slice - slices)))
}

/** When the slice at a place stops counting: as the slice after the next `slices` begins. */
function endUs(ring: Ring, at: number, rule: SlidingWindowRingRule): number {
  return startUs(ring[0] + 1 + at - ring.length + rule.slices + 1, rule)
}

/** The place of the first slice that, with those before it, counts at least so many units. */
function freeing(ring: Ring, first: number, units: number): number {
  let at = first
  for (let left = units - (ring[at] as number); left > 0; left -= ring[at] as number) at += 1
  return at
}

/** The place of the newest slice that counts anything; there is one. */
function newest(ring: Ring): number {
  let at = ring.length - 1
  while (ring[at] === 0) at -= 1
  return at
}

/** The ring from the first place that counts any units up to a slice, which is given more. */
function advance(ring: Ring, first: number, slice: number, units: number): Ring {
  let from = first
  while (ring[from] === 0) from += 1
  if (from === ring.length) return [slice, units]
  const next = copyFrom(ring, from, slice - ring[0])
  next[0] = slice
  next[next.length - 1] = (next[next.length - 1] as number) + units
  return next as [number, ...number[]]
}

/** Room for the slice, the counts from a place on, and a zero for each slice that has passed since. */
function copyFrom(ring: Ring, from: number, passed: number): number[] {
  if (passed === 0) return ring.slice(from - 1)
  const kept = ring.length - from
  const copy = new Array<number>(1 + kept + passed)
  for (let i = 0; i < kept + passed; i++) copy[1 + i] = i < kept ? (ring[from + i] as number) : 0
  return copy
}
