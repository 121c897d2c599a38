import { checkWhole } from '../check-whole.js'
import { badOption, refuseUnknownOptions } from '../errors.js'

/**
 * Whether, and how, a process draws units ahead from a shared store, spends them in memory and gives back what it does
 * not use. Windowed policies stay exact, since units end with the window or slice that they were charged in;
 * `token-bucket` and `gcra` admit at most min(nodes x max, max(nodes, burst / 2)) more in any interval.
 * `sliding-window-log` and `leaky-bucket` cannot lease. Where the limiter is not told the number of `nodes`, a process
 * holds nothing for its first 2.5 s, in which the others learn of it; and a process that crashes leaves what it held
 * charged, as if it had been spent. On a store of this process alone it has no effect.
 */
export type Reserve =
  | boolean
  | {
      /** The most units that a process holds of a key: whole, 1 to 1,000,000. Default 50. */
      max?: number
      /** How long it holds them, in whole milliseconds, 1 to 3,600,000; never beyond the window. Default 5000. */
      ttlMs?: number
    }

export const defaultMax = 50
export const defaultTtlMs = 5000

/** @throws SluiceError for a value that is no {@link Reserve} */
export function checkReserve(reserve: unknown): void {
  if (typeof reserve === 'boolean') return
  if (typeof reserve !== 'object' || reserve === null || Array.isArray(reserve)) {
    throw badOption('reserve', reserve, 'true, false, or an object such as { max: 50, ttlMs: 5000 }')
  }
  refuseUnknownOptions('reserve', reserve, ['max', 'ttlMs'])
  const { max = defaultMax, ttlMs = defaultTtlMs } = reserve as Exclude<Reserve, boolean>
  checkWhole('reserve.max', max, 1, 1_000_000)
  checkWhole('reserve.ttlMs', ttlMs, 1, 3_600_000, 'whole milliseconds')
}
