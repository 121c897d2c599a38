import { badOption, show } from '../errors.js'
import { whenRejected } from '../when-rejected.js'

/** What becomes of a request that the store could not count. */
export type FailureMode = 'allow' | 'deny' | 'local'

/**
 * What to do with a request when the store fails or does not answer in time:
 * - `'allow'`: serve it, uncounted.
 * - `'deny'`: refuse it with 503. For what must not pass unlimited: logins, payments.
 * - `'local'`: count it in the memory of this process, against `limit`, `burst` and `queue` divided by `nodes`.
 * - a function of the error, which returns one of them; one that throws or returns anything else, a promise too, means
 *   `'deny'`.
 *
 * Where the policies of one decision differ, the strictest decides: deny, then local, then allow.
 */
export type OnStoreError = FailureMode | ((error: Error) => FailureMode)

const modes: readonly unknown[] = ['allow', 'local', 'deny'] satisfies FailureMode[]

/** Checks the option `onStoreError`. */
export function checkOnStoreError(value: unknown): void {
  if (typeof value !== 'function' && !modes.includes(value)) {
    throw badOption('onStoreError', value, "'allow', 'deny', 'local', or a function that returns one of them")
  }
}

/**
 * The mode for one failure.
 * @param onMistake hears of a function that threw or returned no mode
 */
export function modeFor(
  onStoreError: OnStoreError,
  error: Error,
  onMistake: (mistake: string) => void,
): FailureMode {
  if (typeof onStoreError !== 'function') return onStoreError
  let mistake: string
  try {
    const mode = onStoreError(error)
    if (modes.includes(mode)) return mode
    const isPromise = whenRejected(mode, () => {})
    mistake = `returned ${isPromise ? 'a promise' : show(mode)}`
  } catch (thrown) {
    mistake = `threw ${show(thrown)}`
  }
  onMistake(`its function \`onStoreError\` ${mistake}`)
  return 'deny'
}

/** The strictest of some modes; none of them amounts to `'allow'`. */
export function strictest(given: readonly FailureMode[]): FailureMode {
  return given.includes('deny') ? 'deny' : given.includes('local') ? 'local' : 'allow'
}
