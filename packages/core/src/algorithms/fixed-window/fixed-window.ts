import { badOption } from '../../errors.js'
import type { AlgorithmDefinition, Rule } from '../algorithm.js'

/** The option of `fixed-window`. */
export interface FixedWindowOptions {
  /**
   * Where windows begin: `'epoch'` (default) at whole multiples of the window since 1970, `'first-request'` at the
   * first charge after the last window ended. Only `fixed-window`.
   */
  align?: 'epoch' | 'first-request'
}

export interface FixedWindowRule extends Rule {
  readonly limit: number
  readonly windowUs: number
  readonly aligned: boolean
}

/** The start of the window in microseconds, and the units used in it. */
export interface FixedWindowState {
  readonly startUs: number
  readonly used: number
}

/**
 * Counts units in windows of fixed length, [start, start + window).
 * Bound: 2 x limit across an edge, the limit at the end of one window and again at the start of the next; one unit less
 * with `align: 'first-request'`, where the first of them opens the window.
 */
export const fixedWindow: AlgorithmDefinition<FixedWindowRule, FixedWindowState> = {
  code: 'fw',
  options: ['align'],
  resolve({ limit, windowUs, options }) {
    const { align = 'epoch' } = options
    if (align !== 'epoch' && align !== 'first-request')
      throw badOption('align', align, "'epoch' or 'first-request'")
    const aligned = align === 'epoch'
    return { burst: limit, limit, windowUs, aligned, wire: [aligned ? 1 : 0] }
  },
  step(state, nowUs, cost, { limit, windowUs, aligned }) {
    let startUs = aligned ? Math.floor(nowUs / windowUs) * windowUs : nowUs
    let used = 0
    if (state && isOpen(state, nowUs, windowUs)) {
      startUs = state.startUs
      used = Math.min(state.used, limit)
    }
    const allowed = used + cost <= limit
    if (allowed) used += cost
    const endUs = startUs + windowUs - nowUs
    const resetUs = used > 0 ? endUs : 0
    return {
      allowed,
      remaining: limit - used,
      retryUs: allowed ? 0 : cost > limit ? -1 : endUs,
      replenishUs: resetUs,
      resetUs,
      delayUs: 0,
      next: allowed && cost > 0 ? { startUs, used } : undefined,
    }
  },
  leaseUs: (resetUs) => resetUs,
  packing: {
    pack({ startUs, used }, { wide, narrow }, at) {
      wide[at + 1] = startUs
      narrow[2 * at] = used
    },
    unpack: ({ wide, narrow }, at) => ({ startUs: wide[at + 1] as number, used: narrow[2 * at] as number }),
  },
  refund(state, nowUs, { units, atUs, resetUs }, { windowUs }) {
    if (!state || !isOpen(state, nowUs, windowUs)) return undefined
    if (state.startUs + windowUs !== atUs + resetUs) return undefined
    return { startUs: state.startUs, used: Math.max(0, state.used - units) }
  },
}

/** Whether the window was used, and is neither over nor more than one ahead of the clock. */
function isOpen({ startUs, used }: FixedWindowState, nowUs: number, windowUs: number): boolean {
  return used > 0 && startUs + windowUs > nowUs && startUs <= nowUs + windowUs
}
