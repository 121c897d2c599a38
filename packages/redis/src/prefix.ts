import { badOption } from '@sluice/core'

/**
 * Checks the option `prefix` of a store.
 * @returns the beginning of every key
 */
export function checkPrefix(prefix: unknown = 'sluice'): string {
  if (typeof prefix !== 'string' || !/^[\w.:-]{1,64}$/.test(prefix)) {
    throw badOption('prefix', prefix, '1 to 64 of the characters A-Z a-z 0-9 _ . : -')
  }
  return `${prefix}:`
}
