import type { Step } from './algorithms/algorithm.js'
import { decide } from './engine.js'
import { type Policy, resolvePolicy } from './policy.js'
import type { Check } from './store.js'

const nowUs = 1_800_057_600_000_000

function check(limit: number, least = 1, most = least, more: Partial<Policy> = {}): Check {
  const policy = resolvePolicy({ algorithm: 'fixed-window', limit, window: '1m', name: `${limit}`, ...more })
  return { key: `k:${limit}`, policy, least, most }
}

/** The state of a check after so many units. */
const used = (units: number) => ({ startUs: nowUs, used: units })

const nextUsed = (outcome: { next: unknown } | undefined) =>
  (outcome?.next as { used: number } | undefined)?.used

describe('a group of checks', () => {
  it('is charged as one when every check admits', () => {
    const outcomes = decide([check(5, 2), check(9, 2)], [used(1), undefined], nowUs)
    expect(outcomes).toMatchObject([
      { allowed: true, granted: 2, remaining: 2, retryUs: 0, atUs: nowUs },
      { allowed: true, granted: 2, remaining: 7, retryUs: 0, atUs: nowUs },
    ])
    expect(outcomes.map(nextUsed)).toEqual([3, 2])
  })

  it('charges none when one denies, and answers for the others as with cost 0 (B87)', () => {
    const outcomes = decide([check(5), check(9)], [used(5), used(2)], nowUs)
    expect(outcomes).toMatchObject([
      { allowed: false, granted: 0, remaining: 0, retryUs: 60_000_000, next: undefined },
      { allowed: true, granted: 0, remaining: 7, retryUs: 0, next: undefined },
    ])
  })

  it('charges the others when only a shadow check denies, and never that one', () => {
    const outcomes = decide([check(5, 1, 1, { shadow: true }), check(9)], [used(5), used(2)], nowUs)
    expect(outcomes).toMatchObject([
      { allowed: false, granted: 0, retryUs: 60_000_000, next: undefined },
      { allowed: true, granted: 1, remaining: 6 },
    ])
    expect(nextUsed(outcomes[1])).toBe(3)
  })

  it('does not charge a shadow check when another denies', () => {
    const outcomes = decide([check(9, 1, 1, { shadow: true }), check(5)], [used(2), used(5)], nowUs)
    expect(outcomes).toMatchObject([
      { allowed: true, granted: 0, remaining: 7, next: undefined },
      { allowed: false, granted: 0 },
    ])
  })

  it('takes what there is between least and most, the same of every check', () => {
    const outcomes = decide([check(5, 1, 4), check(9, 1, 4)], [used(2), used(1)], nowUs)
    expect(outcomes).toMatchObject([
      { allowed: true, granted: 3, remaining: 0 },
      { allowed: true, granted: 3, remaining: 5 },
    ])
    expect(outcomes.map(nextUsed)).toEqual([5, 4])
  })

  it('denies when there is less than least', () => {
    expect(decide([check(5, 4, 8)], [used(2)], nowUs)).toMatchObject([
      { allowed: false, granted: 0, remaining: 3 },
    ])
  })

  it('tells those whom it denies when the least of what they asked for could pass', () => {
    const bucket = check(6, 1, 6, { algorithm: 'token-bucket' })
    const empty = decide([bucket], [undefined], nowUs)[0]?.next
    expect(decide([bucket], [empty], nowUs)).toMatchObject([{ allowed: false, retryUs: 10_000_000 }])
  })

  it.each([0, 1])('denies every cost at limit 0, for ever: cost %p (B148)', (cost) => {
    expect(decide([check(0, cost)], [undefined], nowUs)).toMatchObject([
      { allowed: false, granted: 0, remaining: 0, retryUs: -1, next: undefined },
    ])
  })

  it('stores nothing for cost 0', () => {
    expect(decide([check(5, 0)], [used(2)], nowUs)).toMatchObject([
      { allowed: true, granted: 0, remaining: 3, next: undefined },
    ])
  })

  it('hands on every number of a step', () => {
    const answer: Step = {
      allowed: true,
      remaining: 1,
      retryUs: 2,
      replenishUs: 3,
      resetUs: 4,
      delayUs: 5,
      next: 'state',
    }
    const policy = { ...resolvePolicy({ limit: 1, window: 1 }), step: () => answer }
    expect(decide([{ key: 'k', policy, least: 1, most: 1 }], [undefined], 6)).toEqual([
      { ...answer, granted: 1, atUs: 6 },
    ])
  })
})
