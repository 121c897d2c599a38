import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Decision, Limiter, type Policy, type PolicyDecision, type Store } from '../src/index.js'

interface VectorPolicy {
  readonly name?: string
  readonly algorithm: string
  readonly limit: number
  readonly windowMs: number
  readonly burst?: number
  readonly queue?: number
}

interface Expected {
  readonly remaining: number
  readonly resetSeconds: { readonly min: number; readonly max: number }
  readonly exact: {
    readonly nextUnitMs: number | null
    readonly fullResetMs: number
    readonly retryAfterMs?: number
  }
}

interface ExpectedDecision extends Expected {
  readonly allowed: boolean
  /** Queues only, of admitted requests. */
  readonly delayMs?: number
  readonly retryAfterSeconds: null | { readonly never: true } | { readonly min: number; readonly max: number }
  readonly violated?: readonly string[]
  readonly mostRestrictive?: string
  readonly policies?: Readonly<Record<string, Expected>>
}

/** A worked trace; the head of `vectors.json` says how to read it. */
export interface Vector {
  readonly id: string
  readonly algorithm: string
  readonly scenario: string
  readonly policy: VectorPolicy | readonly VectorPolicy[]
  readonly startEpochMs: number
  readonly requests: readonly { readonly at: number; readonly cost: number }[]
  readonly expected: readonly ExpectedDecision[]
}

export const vectors: readonly Vector[] = JSON.parse(
  readFileSync(join(__dirname, 'vectors.json'), 'utf8'),
).vectors

const policiesOf = ({ policy }: Vector): VectorPolicy[] => [policy].flat()

/** Runs a vector on a store whose clock `setNowUs` sets, and checks every number that it gives. */
export async function runVector(
  vector: Vector,
  store: Store,
  setNowUs: (nowUs: number) => void,
): Promise<void> {
  const policies = policiesOf(vector).map(
    ({ name = 'only', algorithm, limit, windowMs, burst, queue }): Policy => ({
      name,
      algorithm: algorithm as Policy['algorithm'] & string,
      limit,
      window: windowMs,
      ...(burst === undefined ? {} : { burst }),
      ...(queue === undefined ? {} : { queue }),
    }),
  )
  const limiter = new Limiter({
    name: vector.id,
    store,
    policies,
    timeoutMs: 10_000,
    onStoreError: 'deny',
    denyStaleMs: 0,
  })
  for (const [i, { at, cost }] of vector.requests.entries()) {
    setNowUs((vector.startEpochMs + at) * 1000)
    const decision = await limiter.consume({ key: 'k', cost })
    check(decision, vector.expected[i] as ExpectedDecision)
  }
  await limiter.close()
}

function check(decision: Decision, expected: ExpectedDecision): void {
  const { allowed, policies } = decision
  expect(allowed).toBe(expected.allowed)
  expect(decision.degraded).toBe(false)
  expect(decision.delayMs).toBe(expected.delayMs ?? 0)
  if (expected.retryAfterSeconds === null) {
    expect(decision.retryAfterMs).toBe(0)
  } else if ('never' in expected.retryAfterSeconds) {
    expect(decision.retryAfterMs).toBe(Number.POSITIVE_INFINITY)
  } else {
    expect(decision.retryAfterMs).toBe(expected.exact.retryAfterMs)
    const seconds = Math.max(1, Math.ceil(decision.retryAfterMs / 1000))
    expect(seconds).toBeGreaterThanOrEqual(expected.retryAfterSeconds.min)
    expect(seconds).toBeLessThanOrEqual(expected.retryAfterSeconds.max)
  }
  if (!expected.policies) {
    checkNumbers(decision, expected)
    return
  }
  expect(policies.filter((policy) => !policy.allowed).map(({ name }) => name)).toEqual(expected.violated)
  expect(policies).toHaveLength(Object.keys(expected.policies).length)
  for (const policy of policies) checkNumbers(policy, expected.policies[policy.name] as Expected)
  checkNumbers(decision, expected.policies[expected.mostRestrictive as string] as Expected)
}

function checkNumbers(
  numbers: Decision | PolicyDecision,
  { remaining, exact, resetSeconds }: Expected,
): void {
  expect(numbers.remaining).toBe(remaining)
  const quota = 'burst' in numbers ? numbers.burst : numbers.limit
  // Vectors give an untouched window its end as reset; here nothing is outstanding then, and both waits are 0.
  const { replenishAfterMs, resetAfterMs } = numbers
  if (remaining === quota) {
    expect({ replenishAfterMs, resetAfterMs }).toEqual({ replenishAfterMs: 0, resetAfterMs: 0 })
    return
  }
  expect({ replenishAfterMs, resetAfterMs }).toEqual({
    replenishAfterMs: exact.nextUnitMs,
    resetAfterMs: exact.fullResetMs,
  })
  expect(Math.ceil(replenishAfterMs / 1000)).toBe(resetSeconds.min)
  expect(Math.ceil(resetAfterMs / 1000)).toBe(resetSeconds.max)
}
