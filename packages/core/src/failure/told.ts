import { SluiceError } from '../errors.js'
import type { Verdict } from '../store.js'

function isTold(verdict: Verdict | undefined): boolean {
  return typeof verdict?.allowed === 'boolean'
}

/**
 * A store's answer, if it says of each check whether it is allowed: what says nothing must not admit.
 * @throws SluiceError `SLUICE_STORE_FAILED`
 */
export function told(answer: readonly Verdict[], count: number): readonly Verdict[] {
  if (!Array.isArray(answer) || answer.length !== count || !answer.every(isTold)) {
    throw new SluiceError('SLUICE_STORE_FAILED', 'The store did not give one verdict for each check')
  }
  return answer
}
