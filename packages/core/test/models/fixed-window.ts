import { type Charge, type Model, max, type Numbers } from './model.js'

interface Window {
  readonly start: bigint
  used: bigint
}

function windowAt(last: Window | undefined, at: bigint, { windowUs, aligned = true }: Numbers): Window {
  const open = last && last.used > 0n && at < last.start + windowUs && last.start <= at + windowUs
  return open ? last : { start: aligned ? at - (at % windowUs) : at, used: 0n }
}

/** Units charged in the window that holds the moment. */
export const fixedWindowModel: Model = (history, at, numbers) => {
  /** The start of the window of each charge, which is its name. */
  const starts = new Map<Charge, bigint>()
  let window: Window | undefined
  for (const event of history) {
    if ('of' in event) {
      const open = windowAt(window, event.at, numbers)
      if (open === window && open.start === starts.get(event.of)) {
        open.used = max(0n, open.used - event.units)
      }
    } else {
      window = windowAt(window, event.at, event.numbers)
      window.used += event.cost
      starts.set(event, window.start)
    }
  }
  const { used } = windowAt(window, at, numbers)
  return { remaining: max(0n, numbers.limit - used), whole: used === 0n }
}
