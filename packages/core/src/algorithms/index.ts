import type { AlgorithmDefinition } from './algorithm.js'
import { fixedWindow } from './fixed-window/fixed-window.js'
import { gcra } from './gcra/gcra.js'
import { leakyBucket } from './leaky-bucket/leaky-bucket.js'
import { slidingWindowCounter } from './sliding-window-counter/sliding-window-counter.js'
import { slidingWindowLog } from './sliding-window-log/sliding-window-log.js'
import { slidingWindowRing } from './sliding-window-ring/sliding-window-ring.js'
import { tokenBucket } from './token-bucket/token-bucket.js'

/** Every algorithm by the name a policy gives it. */
export const algorithms = {
  'fixed-window': fixedWindow,
  'sliding-window-counter': slidingWindowCounter,
  'sliding-window-log': slidingWindowLog,
  'sliding-window-ring': slidingWindowRing,
  'token-bucket': tokenBucket,
  gcra,
  'leaky-bucket': leakyBucket,
} satisfies Record<string, AlgorithmDefinition>

/** The name of an algorithm, as a policy's `algorithm` option takes it. */
export type Algorithm = keyof typeof algorithms

/** The names of all algorithms. */
export const algorithmNames = Object.keys(algorithms) as readonly Algorithm[]
