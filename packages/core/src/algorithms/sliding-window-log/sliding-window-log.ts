import { badOption } from '../../errors.js'
import type { AlgorithmDefinition, Rule } from '../algorithm.js'

export interface SlidingWindowLogRule extends Rule {
  readonly limit: number
  readonly windowUs: number
}

/**
 * `count` entries from place `first` on in circular arrays: the time of each, never falling, and the units of all
 * entries up to and including it, modulo 2^32. Steps and refunds write into the arrays of the state that they are
 * given: only the newest state of a key is good.
 */
export interface SlidingWindowLogState {
  readonly times: Float64Array
  readonly sums: Uint32Array
  readonly first: number
  readonly count: number
  /** Units of all entries before the first, modulo 2^32. */
  readonly before: number
}

const maxLimit = 100_000

const none: SlidingWindowLogState = {
  times: new Float64Array(0),
  sums: new Uint32Array(0),
  first: 0,
  count: 0,
  before: 0,
}

/**
 * Remembers the time and units of each admitted request.
 * Bound: the limit exactly, in any window, for memory that grows with the limit, which may be at most 100,000.
 */
export const slidingWindowLog: AlgorithmDefinition<SlidingWindowLogRule, SlidingWindowLogState> = {
  code: 'sl',
  options: [],
  resolve({ limit, windowUs }) {
    if (limit > maxLimit) {
      throw badOption(
        'limit',
        limit,
        "at most 100,000 for sliding-window-log; 'sliding-window-ring' keeps the same bound in constant memory",
      )
    }
    return { burst: limit, limit, windowUs, wire: [] }
  },
  step(log = none, nowUs, cost, { limit, windowUs }) {
    const stored = read(log)
    // Entries more than a window ahead of the clock count as none; those of before the window have aged out.
    const end = search(0, log.count, (i) => stored.timeOf(i) > nowUs + windowUs)
    const start = search(0, end, (i) => stored.timeOf(i) > nowUs - windowUs)
    const used = stored.units(start, end)
    const allowed = cost <= Math.max(0, limit - used)
    const next = allowed && cost > 0 ? append(log, start, end, nowUs, cost) : undefined
    const remaining = Math.max(0, limit - used - (next ? cost : 0))
    // Entries ahead of the clock are gone after a charge; without one they count again before others have aged out.
    const { timeOf, units } = read(next ?? log)
    const [first, last] = next ? [0, next.count] : [start, log.count]
    const endUs = (i: number): number => timeOf(i) + windowUs - nowUs
    // First moment at which this many units fit: when enough of the oldest entries have aged out.
    const waitUs = (cost: number): number =>
      endUs(search(first, last, (i) => units(i + 1, last) + cost <= limit))
    return {
      allowed,
      remaining,
      retryUs: allowed ? 0 : cost > limit ? -1 : waitUs(cost),
      replenishUs: remaining < limit ? waitUs(remaining + 1) : 0,
      resetUs: next || used > 0 ? endUs(last - 1) : 0,
      delayUs: 0,
      next,
    }
  },
  refund(log = none, nowUs, charge, { windowUs }) {
    const { timeOf, sumUpTo, units } = read(log)
    const endUs = charge.atUs + charge.resetUs
    const chargedUs = endUs - windowUs
    const start = search(0, log.count, (i) => timeOf(i) >= chargedUs)
    const end = search(start, log.count, (i) => timeOf(i) > chargedUs)
    if (endUs <= nowUs || start === end) return undefined
    // Of the units of that moment these stay: the entries before `count`, and what they lack to it in one more.
    const rest = Math.max(0, units(start, end) - charge.units)
    const given = units(start, end) - rest
    let count = search(start, end, (i) => units(start, i + 1) > rest)
    if (units(start, count) < rest) write(log, count++, chargedUs, sumUpTo(start - 1) + rest)
    for (let i = end; i < log.count; i += 1) write(log, count++, timeOf(i), sumUpTo(i) - given)
    return { ...log, count }
  },
}

function read({ times, sums, first, before }: SlidingWindowLogState) {
  const sumUpTo = (i: number): number => (i < 0 ? before : (sums[(first + i) % sums.length] as number))
  return {
    timeOf: (i: number): number => times[(first + i) % times.length] as number,
    sumUpTo,
    /** Units of the entries from `start` to before `end`. */
    units: (start: number, end: number): number => (sumUpTo(end - 1) - sumUpTo(start - 1)) >>> 0,
  }
}

function write({ times, sums, first }: SlidingWindowLogState, i: number, timeUs: number, sum: number): void {
  const place = (first + i) % times.length
  times[place] = timeUs
  sums[place] = sum
}

/** The first of the places from `low` to before `high` that passes the test, as all after it do; `high` if none does. */
function search(low: number, high: number, passes: (i: number) => boolean): number {
  while (low < high) {
    const middle = (low + high) >> 1
    if (passes(middle)) high = middle
    else low = middle + 1
  }
  return low
}

/**
 * The log with the entries from `start` to before `end` and one more, at now or at the time of the last of them. The
 * given log stays good, for a step that comes to nothing: arrays without a free place behind its entries are replaced,
 * as are those that are far too large.
 */
function append(
  log: SlidingWindowLogState,
  start: number,
  end: number,
  nowUs: number,
  cost: number,
): SlidingWindowLogState {
  const { timeOf, sumUpTo } = read(log)
  const { length } = log.times
  const count = end - start
  let next = {
    ...log,
    first: length === 0 ? 0 : (log.first + start) % length,
    count: count + 1,
    before: sumUpTo(start - 1),
  }
  if (end < log.count || log.count === length || (length > 64 && count < length / 8)) {
    const places = Math.max(2, 2 * count)
    next = { ...next, times: new Float64Array(places), sums: new Uint32Array(places), first: 0 }
    for (let i = 0; i < count; i += 1) write(next, i, timeOf(start + i), sumUpTo(start + i))
  }
  const timeUs = count > 0 ? Math.max(timeOf(end - 1), nowUs) : nowUs
  write(next, count, timeUs, sumUpTo(end - 1) + cost)
  return next
}
