import { type Charge, ceilDiv, type Model, max, min } from './model.js'

/** Units charged in each window, the previous window weighted by the share of it that still counts. */
export const slidingWindowCounterModel: Model = (history, at, { limit, windowUs }) => {
  const charged = new Map<Charge, bigint>()
  let used = new Map<bigint, bigint>()
  let index = 0n
  const isAhead = (time: bigint): boolean => index * windowUs > time + windowUs
  for (const event of history) {
    const now = max(index, event.at / windowUs)
    if ('of' in event) {
      const window = charged.get(event.of) as bigint
      const units = used.get(window) ?? 0n
      if (isAhead(event.at) || window < now - 1n || window > now || units === 0n) continue
      used.set(window, max(0n, units - event.units))
      index = now
    } else {
      if (isAhead(event.at)) used = new Map()
      index = isAhead(event.at) ? event.at / windowUs : now
      used.set(index, (used.get(index) ?? 0n) + event.cost)
      charged.set(event, index)
    }
  }
  if (isAhead(at)) return { remaining: limit, whole: true }
  index = max(index, at / windowUs)
  const current = min(used.get(index) ?? 0n, limit)
  const previous = min(used.get(index - 1n) ?? 0n, limit)
  const elapsed = max(0n, at - index * windowUs)
  const free = limit - current - ceilDiv(previous * (windowUs - elapsed), windowUs)
  return { remaining: max(0n, free), whole: current === 0n && previous === 0n }
}
