import type { Decision, PolicyDecision } from '../decision.js'
import { type HeaderSet, quotaHeaders, resolveHeaderSets, retryAfterSeconds } from './headers.js'

const minute: PolicyDecision = {
  name: 'minute',
  algorithm: 'fixed-window',
  allowed: true,
  limit: 100,
  windowMs: 60_000,
  burst: 100,
  remaining: 40,
  retryAfterMs: 0,
  replenishAfterMs: 30_000,
  resetAfterMs: 30_000,
  delayMs: 0,
  shadow: false,
}

const policy = (changes: Partial<PolicyDecision>): PolicyDecision => ({ ...minute, ...changes })

function headers(policies: readonly PolicyDecision[], ...sets: HeaderSet[]): Record<string, string> {
  const written = quotaHeaders({ policies } as Decision, sets)
  return Object.fromEntries(written.map(({ name, value }) => [name, value]))
}

describe('draft-8', () => {
  test('each policy is a member of both lists', () => {
    const daily = policy({ name: 'daily', limit: 1000, burst: 1000, windowMs: 86_400_000, remaining: 7 })
    expect(headers([minute, daily], 'draft-8')).toEqual({
      'RateLimit-Policy': '"minute";q=100;w=60, "daily";q=1000;w=86400',
      RateLimit: '"minute";r=40;t=30, "daily";r=7;t=30',
    })
  })

  test.each([
    ['nothing outstanding: 0', { remaining: 100, replenishAfterMs: 0 }, ';r=100;t=0'],
    [
      'allowed: when more becomes available, not when all is back',
      { replenishAfterMs: 600, resetAfterMs: 60_000 },
      ';r=40;t=1',
    ],
    [
      'denied: when the same cost passes',
      { allowed: false, remaining: 2, retryAfterMs: 5000, replenishAfterMs: 100 },
      ';r=2;t=5',
    ],
    [
      'denied for ever: none',
      { allowed: false, remaining: 2, retryAfterMs: Number.POSITIVE_INFINITY },
      ';r=2',
    ],
  ])('t, %s', (_, changes, expected) => {
    expect(headers([policy(changes)], 'draft-8').RateLimit).toBe(`"minute"${expected}`)
  })

  test('a policy that would admit keeps its own t when another denies', () => {
    const denying = policy({ name: 'burst', allowed: false, remaining: 0, retryAfterMs: 900 })
    expect(headers([minute, denying], 'draft-8').RateLimit).toBe('"minute";r=40;t=30, "burst";r=0;t=1')
  })

  test.each([
    [1, 1],
    [999, 1],
    [1000, 1],
    [1001, 2],
    [1200, 2],
    [59_999, 60],
  ])('a wait of %d ms is %d s, never too early B136', (replenishAfterMs, seconds) => {
    expect(headers([policy({ replenishAfterMs })], 'draft-8', 'draft-6')).toMatchObject({
      RateLimit: `"minute";r=40;t=${seconds}`,
      'RateLimit-Reset': String(seconds),
    })
  })

  test.each([
    ['a window of whole seconds', { limit: 100, burst: 100, windowMs: 60_000 }, 'q=100;w=60'],
    ['a window of 1.5 s', { limit: 5, burst: 5, windowMs: 1500 }, 'q=5;w=2'],
    ['a window of 1 ms', { limit: 5, burst: 5, windowMs: 1 }, 'q=5;w=1'],
    ['a bucket that fills in less than its window', { limit: 100, burst: 20, windowMs: 60_000 }, 'q=20;w=12'],
    ['a bucket that fills in more', { limit: 10, burst: 25, windowMs: 60_000 }, 'q=25;w=150'],
    ['a bucket whose filling time is no whole second', { limit: 3, burst: 1, windowMs: 10_000 }, 'q=1;w=4'],
    ['limit 0', { limit: 0, burst: 0, windowMs: 60_000 }, 'q=0;w=60'],
    [
      'numbers whose product is not exact',
      { limit: 46_318_247, burst: 46_318_247, windowMs: 12_523_659_000 },
      'q=46318247;w=12523659',
    ],
  ])('w is the time in which q becomes available: %s', (_, changes, expected) => {
    expect(headers([policy(changes)], 'draft-8')['RateLimit-Policy']).toBe(`"minute";${expected}`)
  })

  test('quotes and backslashes of a name are escaped', () => {
    expect(headers([policy({ name: 'a"b\\c' })], 'draft-8').RateLimit).toBe('"a\\"b\\\\c";r=40;t=30')
  })
})

describe('draft-6', () => {
  test('describes one policy in numbers and all of them in RateLimit-Policy', () => {
    const tight = policy({
      name: 'tight',
      limit: 5,
      burst: 5,
      windowMs: 1000,
      remaining: 1,
      replenishAfterMs: 400,
    })
    expect(headers([minute, tight], 'draft-6')).toEqual({
      'RateLimit-Policy': '100;w=60, 5;w=1',
      'RateLimit-Limit': '5',
      'RateLimit-Remaining': '1',
      'RateLimit-Reset': '1',
    })
  })

  test('no two members share a quota: the shortest window stays', () => {
    const policies = [86_400_000, 1000, 3_600_000].map((windowMs) => policy({ windowMs }))
    expect(headers(policies, 'draft-6')['RateLimit-Policy']).toBe('100;w=1')
  })

  test.each([
    [
      'on a denial the denying policy with the longest wait',
      [
        policy({ limit: 7, burst: 7, remaining: 0 }),
        policy({ limit: 8, burst: 8, allowed: false, remaining: 3, retryAfterMs: 2000 }),
        policy({ limit: 9, burst: 9, allowed: false, remaining: 1, retryAfterMs: 1000 }),
      ],
      ['8', '3', '2'],
    ],
    [
      'else the one with the least remaining',
      [policy({ remaining: 3 }), policy({ limit: 8, burst: 8, remaining: 2 })],
      ['8', '2', '30'],
    ],
    [
      'ties to the longer reset',
      [policy({ limit: 7, burst: 7 }), policy({ limit: 8, burst: 8, resetAfterMs: 30_001 })],
      ['8', '40', '30'],
    ],
    [
      'whole again, where no wait would help',
      [policy({ allowed: false, retryAfterMs: Number.POSITIVE_INFINITY, resetAfterMs: 4100 })],
      ['100', '40', '5'],
    ],
    ['a bucket by its burst', [policy({ burst: 20, remaining: 4 })], ['20', '4', '30']],
  ])('the numbers are: %s', (_, policies, [limit, remaining, reset]) => {
    expect(headers(policies, 'draft-6')).toMatchObject({
      'RateLimit-Limit': limit,
      'RateLimit-Remaining': remaining,
      'RateLimit-Reset': reset,
    })
  })
})

test('every value parses by the grammar of its draft, in whole seconds from now B142', () => {
  const policies = [minute, policy({ name: 'never', allowed: false, retryAfterMs: Number.POSITIVE_INFINITY })]
  const member = /^"[ !#-[\]-~]*"(;[a-z]=\d{1,15})+$/
  const newest = headers(policies, 'draft-8', 'draft-6')
  for (const name of ['RateLimit', 'RateLimit-Policy']) {
    for (const part of String(newest[name]).split(', ')) expect(part).toMatch(member)
  }
  const older = headers([minute], 'draft-6')
  expect(older['RateLimit-Policy']).toMatch(/^\d+;w=\d+$/)
  for (const name of ['RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset']) {
    expect(older[name]).toMatch(/^\d{1,15}$/)
  }
  expect(older['RateLimit-Reset']).toBe('30')
})

test('where two sets share a field the newest writes it, once', () => {
  const names = quotaHeaders({ policies: [minute] } as unknown as Decision, ['draft-8', 'draft-6']).map(
    ({ name }) => name,
  )
  expect(names).toEqual([
    'RateLimit-Policy',
    'RateLimit',
    'RateLimit-Limit',
    'RateLimit-Remaining',
    'RateLimit-Reset',
  ])
})

test.each([
  ['no policy applied', []],
  ['all of them are shadows', [policy({ shadow: true, allowed: false })]],
])('there are none where %s', (_, policies) => {
  expect(headers(policies, 'draft-8', 'draft-6')).toEqual({})
})

test('a shadow policy is left out of every set', () => {
  const shadow = policy({ name: 'trial', shadow: true, allowed: false, remaining: 0, retryAfterMs: 9000 })
  expect(headers([shadow, minute], 'draft-8', 'draft-6')).toEqual(headers([minute], 'draft-8', 'draft-6'))
})

describe('Retry-After', () => {
  test.each([
    [1, 1],
    [999, 1],
    [1000, 1],
    [1200, 2],
    [34_560_000_000, 34_560_000],
  ])('%d ms is %d s B136', (retryAfterMs, seconds) => {
    expect(retryAfterSeconds({ allowed: false, retryAfterMs })).toBe(seconds)
  })

  test('is at least 1 for a denied request, even at the edge B138', () => {
    expect(retryAfterSeconds({ allowed: false, retryAfterMs: 0 })).toBe(1)
  })

  test.each([
    ['allowed', { allowed: true, retryAfterMs: 0 }],
    ['denied for ever', { allowed: false, retryAfterMs: Number.POSITIVE_INFINITY }],
  ])('there is none for a request that is %s', (_, decision) => {
    expect(retryAfterSeconds(decision)).toBeUndefined()
  })
})

describe('the option headers', () => {
  test.each([
    ['draft-8', ['draft-8']],
    [
      ['draft-6', 'draft-8'],
      ['draft-8', 'draft-6'],
    ],
    [[], []],
    [false, []],
  ])('%j chooses %j, newest first', (headers, expected) => {
    expect(resolveHeaderSets(headers)).toEqual(expected)
  })

  test.each([true, null, 'draft-9', ['draft-8', 'toString'], 8])('%p is refused', (headers) => {
    expect(() => resolveHeaderSets(headers)).toThrow(
      expect.objectContaining({
        code: 'SLUICE_BAD_OPTION',
        message: expect.stringContaining('draft-8, draft-6'),
      }),
    )
  })
})
