import { type Charge, ceilDiv, type Model, max } from './model.js'

/** Units charged in each slice: of the current one and the `slices` before it, all counted whole. */
export const slidingWindowRingModel: Model = (history, at, { limit, windowUs, slices = 30n }) => {
  const sliceOf = (time: bigint): bigint =>
    slices * (time / windowUs) + ((time % windowUs) * slices) / windowUs
  const startOf = (slice: bigint): bigint =>
    (slice / slices) * windowUs + ceilDiv((slice % slices) * windowUs, slices)
  const charged = new Map<Charge, bigint>()
  let used = new Map<bigint, bigint>()
  let newest = 0n
  const isAhead = (time: bigint): boolean => startOf(newest) > time + windowUs
  for (const event of history) {
    const now = max(newest, sliceOf(event.at))
    if ('of' in event) {
      const slice = charged.get(event.of) as bigint
      const units = used.get(slice) ?? 0n
      if (isAhead(event.at) || slice < now - slices || slice > now || units === 0n) continue
      used.set(slice, max(0n, units - event.units))
      newest = now
    } else {
      if (isAhead(event.at)) used = new Map()
      newest = isAhead(event.at) ? sliceOf(event.at) : now
      used.set(newest, (used.get(newest) ?? 0n) + event.cost)
      charged.set(event, newest)
    }
  }
  if (isAhead(at)) return { remaining: limit, whole: true }
  newest = max(newest, sliceOf(at))
  let sum = 0n
  for (const [slice, units] of used) if (slice >= newest - slices && slice <= newest) sum += units
  return { remaining: max(0n, limit - sum), whole: sum === 0n }
}
