import type { AlgorithmDefinition } from './algorithm.js'
import { fixedWindow } from './fixed-window/fixed-window.js'
import { gcra } from './gcra/gcra.js'
import { slidingWindowCounter } from './sliding-window-counter/sliding-window-counter.js'
import { tokenBucket } from './token-bucket/token-bucket.js'

/** Every algorithm by the name a policy gives it. */
export const algorithms = {
  'fixed-window': fixedWindow,
  'sliding-window-counter': slidingWindowCounter,
  'token-bucket': tokenBucket,
  gcra,
} satisfies Record<string, AlgorithmDefinition>

/** The name of an algorithm, as a policy's `algorithm` option takes it. */
export type Algorithm = keyof typeof algorithms

/** The names of all algorithms. */
export const algorithmNames = Object.keys(algorithms) as readonly Algorithm[]
