import { addUp, decideFrom, decideWithoutPolicy } from './decision.js'
import { type Policy, resolvePolicy } from './policy.js'
import type { Verdict } from './store.js'

const atUs = 1_800_057_600_000_999

type Part = Partial<Verdict> & Pick<Policy, 'name' | 'shadow'>

function decisionOf(...parts: Part[]) {
  const policies = parts.map(({ name, shadow = false }, i) =>
    resolvePolicy({
      name: name ?? `p${i}`,
      shadow,
      algorithm: 'gcra',
      limit: 10,
      window: '1m',
      burst: 20 + i,
    }),
  )
  const verdicts = parts.map((part) => ({
    allowed: true,
    granted: 1,
    remaining: 5,
    retryUs: 0,
    replenishUs: 0,
    resetUs: 0,
    delayUs: 0,
    atUs,
    ...part,
  }))
  return decideFrom({ key: 'k' }, policies, verdicts, 'store')
}

describe('a decision', () => {
  it('stands without the policies that the store could not decide', () => {
    const decision = decisionOf({}, { allowed: false, retryUs: 1 }, { failed: true })
    expect(decision).toMatchObject({ allowed: false, reason: 'quota' })
    expect(decision.policies).toHaveLength(2)
  })

  it('states who was counted, by whom and when', () => {
    expect(decisionOf({})).toMatchObject({
      key: 'k',
      source: 'store',
      degraded: false,
      atMs: 1_800_057_600_000,
      policies: [{ name: 'p0', algorithm: 'gcra', limit: 10, burst: 20, windowMs: 60_000, shadow: false }],
    })
    expect(decisionOf({}).plan).toBeUndefined()
  })

  it('rounds every wait up to whole milliseconds', () => {
    const decision = decisionOf({ allowed: false, retryUs: 1, replenishUs: 1001, resetUs: 2000, delayUs: 0 })
    const numbers = { retryAfterMs: 1, replenishAfterMs: 2, resetAfterMs: 2 }
    expect(decision).toMatchObject({ ...numbers, policies: [numbers] })
  })

  it.each<[string, Part, number]>([
    ['allowed: when there is more', { replenishUs: 1001, resetUs: 2000 }, atUs + 1001],
    ['allowed, with nothing outstanding: now', {}, atUs],
    [
      'denied: when the same cost passes',
      { allowed: false, retryUs: 1, replenishUs: 1001, resetUs: 2000 },
      atUs + 1,
    ],
    [
      'denied for ever: when the limit is whole',
      { allowed: false, retryUs: -1, replenishUs: 1001, resetUs: 2000 },
      atUs + 2000,
    ],
  ])('keeps the moment to wait for to the microsecond, %s', (_, part, moreAtUs) => {
    expect(decisionOf(part).policies[0]?.moreAtUs).toBe(moreAtUs)
  })

  it.each<[string, Part[], object]>([
    ['ok when all admit', [{}, {}], { allowed: true, reason: 'ok', retryAfterMs: 0 }],
    [
      'quota when one denies for now',
      [{}, { allowed: false, retryUs: 5000 }],
      { allowed: false, reason: 'quota', retryAfterMs: 5 },
    ],
    [
      'cost, with Infinity for never, before quota',
      [
        { allowed: false, retryUs: 5000 },
        { allowed: false, retryUs: -1 },
      ],
      { allowed: false, reason: 'cost', retryAfterMs: Number.POSITIVE_INFINITY },
    ],
    [
      'ok when only a shadow policy denies',
      [{}, { allowed: false, retryUs: -1, shadow: true }],
      { allowed: true, reason: 'ok', retryAfterMs: 0 },
    ],
    [
      'ok without numbers when every policy is a shadow',
      [{ allowed: false, retryUs: 5000, shadow: true }],
      { allowed: true, reason: 'ok', limit: Number.POSITIVE_INFINITY, remaining: Number.POSITIVE_INFINITY },
    ],
  ])('is %s', (_, parts, expected) => {
    expect(decisionOf(...parts)).toMatchObject(expected)
  })

  const denied = { allowed: false, remaining: 0 }
  it.each<[string, Part[], number]>([
    [
      'with the longest wait of those that deny',
      [{ ...denied, retryUs: 1000 }, { ...denied, retryUs: 9000 }, { remaining: 0 }],
      1,
    ],
    [
      'that can never admit',
      [
        { ...denied, retryUs: 9000 },
        { ...denied, retryUs: -1 },
        { ...denied, retryUs: 9001 },
      ],
      1,
    ],
    [
      'with the longer reset of two that deny as long',
      [
        { ...denied, retryUs: 1000, resetUs: 1000 },
        { ...denied, retryUs: 1000, resetUs: 9000 },
      ],
      1,
    ],
    [
      'that denies, however much it has left',
      [{ remaining: 0 }, { allowed: false, remaining: 3, retryUs: 1 }],
      1,
    ],
    ['with the least remaining when all admit', [{ remaining: 5 }, { remaining: 2 }, { remaining: 3 }], 1],
    [
      'with the longer reset of two with as much left',
      [
        { remaining: 2, resetUs: 1000 },
        { remaining: 2, resetUs: 9000 },
      ],
      1,
    ],
    ['that comes first of two alike', [{ remaining: 2 }, { remaining: 2 }], 0],
    ['that is no shadow', [{ ...denied, retryUs: 9000, shadow: true }, { remaining: 2 }], 1],
  ])('describes the policy %s', (_, parts, described) => {
    const decision = decisionOf(...parts)
    const { burst, remaining, retryAfterMs, resetAfterMs } = decision.policies[described] ?? {}
    expect(decision).toMatchObject({ limit: burst, remaining, retryAfterMs, resetAfterMs })
    expect(decision.limit).toBe(20 + described)
  })

  it('waits as long as the slowest policy, and not at all when denied', () => {
    expect(decisionOf({ delayUs: 1500 }, { delayUs: 3000 }).delayMs).toBe(3)
    expect(decisionOf({ delayUs: 1500 }, { allowed: false, retryUs: 1000 }).delayMs).toBe(0)
  })
})

describe('a decision without a policy', () => {
  it.each([
    ['skipped', true, false],
    ['unlimited', true, false],
    ['store-error', true, true],
    ['store-error', false, true],
  ] as const)('for %s, allowed %p, invents no quota', (reason, allowed, degraded) => {
    expect(decideWithoutPolicy({ key: 'k', plan: 'p' }, reason, allowed, 7)).toEqual({
      key: 'k',
      plan: 'p',
      allowed,
      reason,
      source: 'none',
      degraded,
      limit: Number.POSITIVE_INFINITY,
      remaining: allowed ? Number.POSITIVE_INFINITY : 0,
      retryAfterMs: allowed ? 0 : 1000,
      replenishAfterMs: 0,
      resetAfterMs: 0,
      delayMs: 0,
      atMs: 7,
      policies: [],
    })
  })
})

describe('the decisions of several limiters', () => {
  const part = (limiter: string, ...parts: Part[]) => ({ limiter, decision: decisionOf(...parts) })
  const failed = { limiter: 'c', decision: decideWithoutPolicy({ key: 'k' }, 'store-error', false, 0) }
  const served = { limiter: 'c', decision: decideWithoutPolicy({ key: 'k' }, 'store-error', true, 0) }
  const skipped = { limiter: 'd', decision: decideWithoutPolicy({ key: 'k' }, 'skipped', true, 0) }

  it('of one limiter is its own', () => {
    const only = part('a', {})
    expect(addUp([only])).toBe(only.decision)
  })

  it('add up to one list, names that collide told apart', () => {
    const sum = addUp([part('a', { name: 'x' }, { name: 'y' }), part('b', { name: 'x', remaining: 1 })])
    expect(sum.policies.map((policy) => policy.name)).toEqual(['a/x', 'y', 'b/x'])
    expect(sum).toMatchObject({ allowed: true, remaining: 1 })
  })

  it.each<[string, [limiter: string, policy: string][], string[]]>([
    [
      'limiters of one name number them',
      [
        ['default', '100-per-1m'],
        ['default', '100-per-1m'],
        ['default', '100-per-1m'],
      ],
      ['default/100-per-1m', 'default/100-per-1m/2', 'default/100-per-1m/3'],
    ],
    [
      'a name that looks told apart is one more to tell apart',
      [
        ['a', 'x'],
        ['b', 'x'],
        ['c', 'a/x'],
        ['a', 'x'],
      ],
      ['a/x', 'b/x', 'a/x/2', 'a/x/3'],
    ],
  ])('never hold one name twice: %s', (_, policies, names) => {
    const sum = addUp(policies.map(([limiter, name]) => part(limiter, { name })))
    expect(sum.policies.map((policy) => policy.name)).toEqual(names)
  })

  it('is a denial when one denies', () => {
    const sum = addUp([part('a', {}), part('b', { allowed: false, retryUs: 5000 })])
    expect(sum).toMatchObject({ allowed: false, reason: 'quota', retryAfterMs: 5 })
  })

  it('is a store error when the last store failed and the limiter denies then', () => {
    expect(addUp([part('a', {}), failed])).toMatchObject({
      allowed: false,
      reason: 'store-error',
      degraded: true,
    })
  })

  it('says that one was served uncounted, and keeps the numbers of the others (B115)', () => {
    expect(addUp([part('a', { remaining: 2 }), served])).toMatchObject({
      allowed: true,
      remaining: 2,
      degraded: true,
    })
    expect(addUp([served, skipped])).toMatchObject({
      allowed: true,
      reason: 'skipped',
      degraded: true,
      policies: [],
    })
  })
})
