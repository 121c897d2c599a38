import { show } from '../errors.js'

/** What was thrown, as an error: a store may throw anything, also an error of another realm. */
export function asError(thrown: unknown): Error {
  if (thrown instanceof Error) return thrown
  const { message } = Object(thrown)
  return new Error(typeof message === 'string' ? message : show(thrown), { cause: thrown })
}
