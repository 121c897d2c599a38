import { SluiceError } from '../errors.js'
import type { Verdict } from '../store.js'

/**
 * Takes a store's answer only if it says of each check whether it is allowed: what says nothing must not admit.
 * @throws SluiceError `SLUICE_STORE_FAILED`
 */
export function assertVerdicts(answer: readonly Verdict[], count: number): void {
  const told = (verdict: Verdict | undefined): boolean => typeof verdict?.allowed === 'boolean'
  if (!Array.isArray(answer) || answer.length !== count || !answer.every(told)) {
    throw new SluiceError('SLUICE_STORE_FAILED', 'The store did not give one verdict for each check')
  }
}
