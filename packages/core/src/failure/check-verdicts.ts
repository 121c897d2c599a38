import { SluiceError } from '../errors.js'
import type { Verdict } from '../store.js'

function isTold(verdict: Verdict | undefined): boolean {
  return typeof verdict?.allowed === 'boolean'
}

/**
 * Checks that a store's answer says of each check whether it is allowed: what says nothing must not admit.
 * @throws SluiceError `SLUICE_STORE_FAILED`
 */
export function checkVerdicts(answer: unknown, count: number): void {
  if (!Array.isArray(answer) || answer.length !== count || !answer.every(isTold)) {
    throw new SluiceError('SLUICE_STORE_FAILED', 'The store did not give one verdict for each check')
  }
}
