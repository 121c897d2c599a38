import type { AlgorithmDefinition, Rule } from '../algorithm.js'
import { mulDiv } from '../arithmetic.js'

export interface CounterRule extends Rule {
  readonly limit: number
  readonly windowUs: number
}

/** The index of the current window since the epoch, and the units of the previous and the current one. */
export interface CounterState {
  readonly index: number
  readonly previous: number
  readonly current: number
}

/**
 * Estimates a sliding window from two fixed ones: the previous window counts by the share of it that the sliding
 * window still covers, rounded up.
 * Bound: 2 x limit - 1 at worst (the limit at the end of one window, then what its fading share frees), near the
 * limit on real traffic.
 */
export const slidingWindowCounter: AlgorithmDefinition<CounterRule, CounterState> = {
  code: 'sc',
  options: [],
  resolve({ limit, windowUs }) {
    return { burst: limit, limit, windowUs, wire: [] }
  },
  step(state, nowUs, cost, { limit, windowUs }) {
    const windows = advance(state, nowUs, windowUs)
    const { index } = windows
    let current = Math.min(windows.current, limit)
    const previous = Math.min(windows.previous, limit)
    const sinceUs = nowUs - index * windowUs // negative after a step back of the clock
    const faded = mulDiv(previous, Math.max(0, sinceUs), windowUs)
    let remaining = Math.max(0, limit - current - previous + faded)
    const allowed = cost <= remaining
    if (allowed) {
      current += cost
      remaining -= cost
    }
    const waits = { limit, windowUs, sinceUs, previous, current }
    return {
      allowed,
      remaining,
      retryUs: allowed ? 0 : cost > limit ? -1 : waitUs(cost, waits),
      replenishUs: remaining < limit ? waitUs(remaining + 1, waits) : 0,
      resetUs: current > 0 ? 2 * windowUs - sinceUs : previous > 0 ? windowUs - sinceUs : 0,
      delayUs: 0,
      // The previous window as it was: a smaller limit in between must not forget units for a larger one.
      next: allowed && cost > 0 ? { index, previous: windows.previous, current } : undefined,
    }
  },
  leaseUs: (resetUs, { windowUs }) => resetUs - windowUs,
  packing: {
    pack({ index, previous, current }, { wide, narrow }, at) {
      wide[at + 1] = index
      narrow[2 * at] = previous
      narrow[2 * at + 1] = current
    },
    unpack: ({ wide, narrow }, at) => ({
      index: wide[at + 1] as number,
      previous: narrow[2 * at] as number,
      current: narrow[2 * at + 1] as number,
    }),
  },
  refund(state, nowUs, { units, atUs, resetUs }, { windowUs }) {
    const { index, previous, current } = advance(state, nowUs, windowUs)
    const charged = (atUs + resetUs) / windowUs - 2
    if (charged === index && current > 0) return { index, previous, current: Math.max(0, current - units) }
    if (charged === index - 1 && previous > 0) {
      return { index, previous: Math.max(0, previous - units), current }
    }
    return undefined
  },
}

interface Waits {
  readonly limit: number
  readonly windowUs: number
  readonly sinceUs: number
  readonly previous: number
  readonly current: number
}

/**
 * First moment at which this many units fit: in this window once enough of the previous one has faded, else in the
 * next one, where today's current count is the one that fades.
 */
function waitUs(units: number, { limit, windowUs, sinceUs, previous, current }: Waits): number {
  return current + units <= limit
    ? windowUs - mulDiv(limit - current - units, windowUs, previous) - sinceUs
    : 2 * windowUs - mulDiv(limit - units, windowUs, current) - sinceUs
}

/** The windows as they stand now; time never runs backwards, and windows more than one ahead count as none. */
function advance(state: CounterState | undefined, nowUs: number, windowUs: number): CounterState {
  const index = Math.floor(nowUs / windowUs)
  if (!state || state.index < index - 1 || state.index * windowUs > nowUs + windowUs) {
    return { index, previous: 0, current: 0 }
  }
  return state.index < index ? { index, previous: state.current, current: 0 } : state
}
