import type { ResolvedPolicy } from '../../policy.js'
import type { AlgorithmDefinition, Rule } from '../algorithm.js'
import { CENTURY_US } from '../bucket.js'

interface BlockRule extends Rule {
  /** Length in microseconds of the block that a charge sets, or 0 to only look. */
  readonly lengthUs: number
}

/** The end of the block, in microseconds since the epoch. */
interface BlockState {
  readonly endUs: number
}

const block: Pick<AlgorithmDefinition<BlockRule, BlockState>, 'code' | 'step' | 'refund' | 'packing'> = {
  code: 'bk',
  step(state, nowUs, cost, { lengthUs }) {
    if (lengthUs > 0 && cost > 0) {
      const next = { endUs: nowUs + lengthUs }
      return {
        allowed: true,
        remaining: 0,
        retryUs: 0,
        replenishUs: lengthUs,
        resetUs: lengthUs,
        delayUs: 0,
        next,
      }
    }
    const leftUs = state && state.endUs <= nowUs + CENTURY_US ? Math.max(0, state.endUs - nowUs) : 0
    return {
      allowed: leftUs === 0,
      remaining: leftUs === 0 ? 1 : 0,
      retryUs: leftUs,
      replenishUs: leftUs,
      resetUs: leftUs,
      delayUs: 0,
      next: undefined,
    }
  },
  refund: () => undefined,
  packing: {
    pack({ endUs }, { wide }, at) {
      wide[at + 1] = endUs
    },
    unpack: ({ wide }, at) => ({ endUs: wide[at + 1] as number }),
  },
}

/**
 * An explicit block of a key, decided and stored like a policy: it refuses everything until it ends. With a length it
 * sets a block that begins now, when charged; without one it only looks.
 */
export function blockPolicy(lengthMs = 0): ResolvedPolicy {
  const lengthUs = lengthMs * 1000
  const policy: ResolvedPolicy = {
    name: '-',
    algorithm: 'fixed-window',
    limit: 1,
    windowMs: lengthMs,
    burst: 1,
    shadow: false,
    countsUnits: false,
    onStoreError: undefined,
    reserve: undefined,
    keySuffix: `-:${block.code}`,
    step: block.step,
    refund: block.refund,
    leaseUs: undefined,
    packing: block.packing,
    rule: { burst: 1, lengthUs, wire: [lengthUs] } as Rule,
    data: { block: lengthMs },
    wire: [block.code, 0, 1, lengthUs, 1, lengthUs],
    withLimit: () => policy,
    share: () => policy,
  }
  return policy
}
