/**
 * Hears of the rejection of what a user's function returned if that is a promise, also of another realm or library: one
 * that nobody hears of ends the process.
 * @returns whether it is a promise
 */
export function whenRejected(returned: unknown, hear: (error: unknown) => void): boolean {
  const isPromise = typeof (returned as PromiseLike<unknown> | null | undefined)?.then === 'function'
  if (isPromise) Promise.resolve(returned).catch(hear)
  return isPromise
}
