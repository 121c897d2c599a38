import { blockPolicy } from './algorithms/block/block.js'
import { type PolicyData, type ResolvedPolicy, resolvePolicy } from './policy.js'

/**
 * Makes a policy again from its `data`, for a store that decides in another process than it is asked in. Its key is no
 * part of that: a check brings its own.
 * @throws SluiceError with the option, its value and what is expected
 */
export function policyFrom(data: PolicyData): ResolvedPolicy {
  return 'block' in data ? blockPolicy(data.block) : resolvePolicy(data)
}
