import { ceilDiv, type Model, max, min } from './model.js'

/** Units charged in each window, the previous window weighted by the share of it that still counts. */
export const slidingWindowCounterModel: Model = (history, at, { limit, windowUs }) => {
  const used = new Map<bigint, bigint>()
  let index = 0n
  const moveTo = (time: bigint): void => {
    if (index * windowUs > time + windowUs) {
      used.clear()
      index = 0n
    }
    index = max(index, time / windowUs)
  }
  for (const charge of history) {
    moveTo(charge.at)
    used.set(index, (used.get(index) ?? 0n) + charge.cost)
  }
  moveTo(at)
  const current = min(used.get(index) ?? 0n, limit)
  const previous = min(used.get(index - 1n) ?? 0n, limit)
  const elapsed = max(0n, at - index * windowUs)
  const free = limit - current - ceilDiv(previous * (windowUs - elapsed), windowUs)
  return { remaining: max(0n, free), whole: current === 0n && previous === 0n }
}
