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
  const windows = new Map<Charge, Window>()
  let window: Window | undefined
  for (const event of history) {
    if ('of' in event) {
      const charged = windows.get(event.of)
      if (charged && charged === windowAt(window, event.at, numbers)) {
        charged.used = max(0n, charged.used - event.units)
      }
    } else {
      window = windowAt(window, event.at, event.numbers)
      window.used += event.cost
      windows.set(event, window)
    }
  }
  const { used } = windowAt(window, at, numbers)
  return { remaining: max(0n, numbers.limit - used), whole: used === 0n }
}
