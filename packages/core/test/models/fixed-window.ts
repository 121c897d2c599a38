import { type Model, max, type Numbers } from './model.js'

interface Window {
  readonly start: bigint
  used: bigint
}

function windowAt(last: Window | undefined, at: bigint, { windowUs, aligned = true }: Numbers): Window {
  if (last && at < last.start + windowUs && last.start <= at + windowUs) return last
  return { start: aligned ? at - (at % windowUs) : at, used: 0n }
}

/** Units charged in the window that holds the moment. */
export const fixedWindowModel: Model = (history, at, numbers) => {
  let window: Window | undefined
  for (const charge of history) {
    window = windowAt(window, charge.at, charge.numbers)
    window.used += charge.cost
  }
  const { used } = windowAt(window, at, numbers)
  return { remaining: max(0n, numbers.limit - used), whole: used === 0n }
}
