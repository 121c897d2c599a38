import { type Charge, type Model, max, min } from './model.js'

interface Entry {
  readonly time: bigint
  units: bigint
}

/** Units of every charge that is younger than a window, at its own time or that of a later one before it. */
export const slidingWindowLogModel: Model = (history, at, { limit, windowUs }) => {
  const charged = new Map<Charge, bigint>()
  let entries: Entry[] = []
  const counting = (time: bigint): Entry[] =>
    entries.filter((entry) => time - windowUs < entry.time && entry.time <= time + windowUs)
  for (const event of history) {
    if ('of' in event) {
      const time = charged.get(event.of) as bigint
      if (time + windowUs <= event.at) continue
      let left = event.units
      for (const entry of entries.filter((entry) => entry.time === time)) {
        const given = min(entry.units, left)
        entry.units -= given
        left -= given
      }
      entries = entries.filter(({ units }) => units > 0n)
    } else {
      entries = counting(event.at)
      const time = entries.reduce((newest, entry) => max(newest, entry.time), event.at)
      entries.push({ time, units: event.cost })
      charged.set(event, time)
    }
  }
  const sum = counting(at).reduce((sum, { units }) => sum + units, 0n)
  return { remaining: max(0n, limit - sum), whole: sum === 0n }
}
