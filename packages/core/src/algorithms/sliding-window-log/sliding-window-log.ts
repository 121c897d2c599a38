import { badOption } from '../../errors.js'
import type { AlgorithmDefinition, Rule } from '../algorithm.js'

export interface SlidingWindowLogRule extends Rule {
  readonly limit: number
  readonly windowUs: number
}

/**
 * `count` entries from place `first` on in circular arrays: the time of each, never falling, and the units of all
 * entries up to and including it. A step appends in place, behind the entries of the state it was given: only the
 * newest state of a key is good.
 */
export interface SlidingWindowLogState {
  readonly times: Float64Array
  readonly sums: Float64Array
  readonly first: number
  readonly count: number
  /** Units of all entries before `first`. */
  readonly before: number
}

const maxLimit = 100_000

const none: SlidingWindowLogState = {
  times: new Float64Array(0),
  sums: new Float64Array(0),
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
    const timeOf = (i: number): number => log.times[(log.first + i) % log.times.length] as number
    const sumUpTo = (i: number): number =>
      i < 0 ? log.before : (log.sums[(log.first + i) % log.sums.length] as number)
    // Entries more than a window ahead of the clock count as none; those of before the window have aged out.
    const end = search(log.count, (i) => timeOf(i) > nowUs + windowUs)
    const start = search(end, (i) => timeOf(i) > nowUs - windowUs)
    const gone = sumUpTo(start - 1)
    let used = sumUpTo(end - 1) - gone
    let newestUs = used > 0 ? timeOf(end - 1) : 0
    const allowed = cost <= Math.max(0, limit - used)
    let next: SlidingWindowLogState | undefined
    if (allowed && cost > 0) {
      used += cost
      newestUs = Math.max(newestUs, nowUs)
      next = append(log, used > cost ? start : end, end, gone, newestUs, gone + used)
    }
    const remaining = Math.max(0, limit - used)
    // First moment at which this many units fit: when enough of the oldest entries have aged out.
    const waitUs = (units: number): number => {
      const i = search(end, (entry) => entry >= start && used - (sumUpTo(entry) - gone) + units <= limit)
      return (i < end ? timeOf(i) : newestUs) + windowUs - nowUs
    }
    return {
      allowed,
      remaining,
      retryUs: allowed ? 0 : cost > limit ? -1 : waitUs(cost),
      replenishUs: remaining < limit ? waitUs(remaining + 1) : 0,
      resetUs: used > 0 ? newestUs + windowUs - nowUs : 0,
      delayUs: 0,
      next,
    }
  },
  refund(log = none, _nowUs, { units, atUs }) {
    const place = (i: number): number => (log.first + i) % log.times.length
    const unitsOf = (i: number): number =>
      (log.sums[place(i)] as number) - (i === 0 ? log.before : (log.sums[place(i - 1)] as number))
    let i = search(log.count, (entry) => (log.times[place(entry)] as number) >= atUs)
    while (i < log.count && log.times[place(i)] === atUs && unitsOf(i) < units) i += 1
    if (i === log.count || log.times[place(i)] !== atUs) return undefined
    const emptied = i === log.count - 1 && unitsOf(i) === units
    for (; i < log.count; i += 1) log.sums[place(i)] = (log.sums[place(i)] as number) - units
    return emptied ? { ...log, count: log.count - 1 } : log
  },
}

/** The first of `count` places that passes the test, which none before and all after it do; `count` if none does. */
function search(count: number, passes: (i: number) => boolean): number {
  let low = 0
  let high = count
  while (low < high) {
    const middle = (low + high) >> 1
    if (passes(middle)) high = middle
    else low = middle + 1
  }
  return low
}

/** Keeps the entries from `start` to before `end` and adds one; arrays that are full, or far too large, are replaced. */
function append(
  log: SlidingWindowLogState,
  start: number,
  end: number,
  before: number,
  timeUs: number,
  sum: number,
): SlidingWindowLogState {
  const count = end - start
  let { times, sums } = log
  let first = times.length === 0 ? 0 : (log.first + start) % times.length
  // The entry goes behind those of the given state, which stays good where the step was only tried.
  const fits = end === log.count && end < times.length
  if (!fits || (times.length > 64 && count < times.length / 8)) {
    const length = Math.max(2, 2 * count)
    const copy = (from: Float64Array): Float64Array => {
      const to = new Float64Array(length)
      for (let i = 0; i < count; i += 1) to[i] = from[(first + i) % from.length] as number
      return to
    }
    ;[times, sums, first] = [copy(times), copy(sums), 0]
  }
  const place = (first + count) % times.length
  times[place] = timeUs
  sums[place] = sum
  return { times, sums, first, count: count + 1, before }
}
