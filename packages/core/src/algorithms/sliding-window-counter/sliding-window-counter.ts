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
    let index = Math.floor(nowUs / windowUs)
    let before = 0
    let current = 0
    if (state && state.index >= index - 1 && state.index * windowUs <= nowUs + windowUs) {
      if (state.index < index) {
        before = state.current
      } else {
        index = state.index
        before = state.previous
        current = Math.min(state.current, limit)
      }
    }
    // Stored as it was: a smaller limit in between must not forget units for a larger one.
    const previous = Math.min(before, limit)
    const sinceUs = nowUs - index * windowUs // negative after a step back of the clock
    const faded = mulDiv(previous, Math.max(0, sinceUs), windowUs)
    let remaining = Math.max(0, limit - current - previous + faded)
    const allowed = cost <= remaining
    if (allowed) {
      current += cost
      remaining -= cost
    }
    // First moment at which this many units fit: in this window once enough of the previous one has faded, else in
    // the next one, where today's current count is the one that fades.
    const waitUs = (units: number): number =>
      current + units <= limit
        ? windowUs - mulDiv(limit - current - units, windowUs, previous) - sinceUs
        : 2 * windowUs - mulDiv(limit - units, windowUs, current) - sinceUs
    return {
      allowed,
      remaining,
      retryUs: allowed ? 0 : cost > limit ? -1 : waitUs(cost),
      replenishUs: remaining < limit ? waitUs(remaining + 1) : 0,
      resetUs: current > 0 ? 2 * windowUs - sinceUs : previous > 0 ? windowUs - sinceUs : 0,
      delayUs: 0,
      next: allowed && cost > 0 ? { index, previous: before, current } : undefined,
    }
  },
  refund(state, _nowUs, { units, atUs }, { windowUs }) {
    const index = Math.floor(atUs / windowUs)
    if (state?.index === index) return { ...state, current: Math.max(0, state.current - units) }
    if (state?.index === index + 1) return { ...state, previous: Math.max(0, state.previous - units) }
    return undefined
  },
}
