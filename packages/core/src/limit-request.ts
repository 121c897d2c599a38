import { SluiceError, show } from './errors.js'
import { encodeKey } from './key.js'

/** A request as `consume` of a limiter takes it. */
export interface LimitRequest {
  /** Who is counted. */
  key: string
  /** Units to charge: whole, 0 to 10^9; 0 charges nothing. Default 1. */
  cost?: number
  /** The plan whose policies apply; for limiters with `plans`, and required there. */
  plan?: string
  /** Another limit for this request; for limiters of the short form that have a name. */
  limit?: number
}

/** A request's key as its store keys hold it. */
export function ownerOf(key: unknown): string {
  if (typeof key === 'string') return encodeKey(key)
  throw new SluiceError(
    'SLUICE_BAD_KEY',
    `The key is ${show(key)}. Expected a string, as in { key: 'user:42' }`,
  )
}

/** The error for a cost, or for units to give back, that cannot be used. */
export function badCost(what: 'cost' | 'units', value: unknown): SluiceError {
  return new SluiceError(
    'SLUICE_BAD_COST',
    `The ${what} is ${show(value)}. Expected a whole number from 0 to 1,000,000,000`,
  )
}
