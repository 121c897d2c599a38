import type { Decision, PolicyDecision } from '../decision.js'
import {
  type HeaderSet,
  type LegacyReset,
  postpone,
  quotaHeaders,
  resolveHeaderSets,
  retryAfterSeconds,
} from './headers.js'

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
  moreAtUs: 1_800_000_030_000_000,
  delayMs: 0,
  shadow: false,
}

const policy = (changes: Partial<PolicyDecision>): PolicyDecision => ({ ...minute, ...changes })

type Headers = Record<string, string>

function headers(policies: readonly PolicyDecision[], ...sets: HeaderSet[]): Headers {
  return headersBy('epoch', policies, ...sets)
}

function headersBy(
  legacyReset: LegacyReset,
  policies: readonly PolicyDecision[],
  ...sets: HeaderSet[]
): Headers {
  const written = quotaHeaders(policies, resolveHeaderSets(sets, legacyReset))
  return Object.fromEntries(written.map(({ name, value }) => [name, value]))
}

/** The numbers of the older sets: limit, remaining and reset, wherever the set writes them. */
const olderSets: [string, (policies: readonly PolicyDecision[]) => (string | undefined)[]][] = [
  [
    'draft-7',
    (policies) =>
      /^limit=(\d+), remaining=(\d+), reset=(\d+)$/
        .exec(headers(policies, 'draft-7').RateLimit as string)
        ?.slice(1) ?? [],
  ],
  ['draft-6', (policies) => threeItems('RateLimit', headers(policies, 'draft-6'))],
  ['legacy, delta', (policies) => threeItems('X-RateLimit', headersBy('delta', policies, 'legacy'))],
]

function threeItems(prefix: string, written: Headers): (string | undefined)[] {
  return ['Limit', 'Remaining', 'Reset'].map((name) => written[`${prefix}-${name}`])
}

describe('draft-8', () => {
  test('each policy is a member of both lists', () => {
    const daily = policy({ name: 'daily', limit: 1000, burst: 1000, windowMs: 86_400_000, remaining: 7 })
    expect(headers([minute, daily], 'draft-8')).toEqual({
      'RateLimit-Policy': '"minute";q=100;w=60, "daily";q=1000;w=86400',
      RateLimit: '"minute";r=40;t=30, "daily";r=7;t=30',
    })
  })

  test('a name has the numbers of each policy that bears it', () => {
    const changes = [{}, { burst: 50 }, { windowMs: 1000 }, { limit: 200 }, { limit: 200, burst: 50 }]
    const quotas = (): (string | undefined)[] =>
      changes.map((change) => headers([policy(change)], 'draft-8')['RateLimit-Policy'])
    const expected = ['100;w=60', '50;w=30', '100;w=1', '100;w=30', '50;w=15']
    for (let time = 0; time < 2; time++) expect(quotas()).toEqual(expected.map((q) => `"minute";q=${q}`))
  })

  test('a name is told of however many others were in between', () => {
    const names = Array.from({ length: 1500 }, (_, i) => `policy ${i}`)
    const written = [...names, ...names].map((name) => headers([policy({ name })], 'draft-8').RateLimit)
    expect(written).toEqual([...names, ...names].map((name) => `"${name}";r=40;t=30`))
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

describe('the older sets', () => {
  const tight = policy({
    name: 'tight',
    limit: 5,
    burst: 5,
    windowMs: 1000,
    remaining: 1,
    replenishAfterMs: 400,
  })
  const three = (prefix: string) => ({
    [`${prefix}-Limit`]: '5',
    [`${prefix}-Remaining`]: '1',
    [`${prefix}-Reset`]: '1',
  })
  test.each<[HeaderSet, Headers]>([
    ['draft-7', { 'RateLimit-Policy': '100;w=60, 5;w=1', RateLimit: 'limit=5, remaining=1, reset=1' }],
    ['draft-6', { 'RateLimit-Policy': '100;w=60, 5;w=1', ...three('RateLimit') }],
    ['legacy', three('X-RateLimit')],
  ])('%s describes one policy in numbers, and lists all where it can', (set, expected) => {
    expect(headersBy('delta', [minute, tight], set)).toEqual(expected)
  })

  test.each<[HeaderSet]>([['draft-7'], ['draft-6']])(
    '%s: no two members share a quota: the shortest window stays',
    (set) => {
      const policies = [86_400_000, 1000, 3_600_000].map((windowMs) => policy({ windowMs }))
      expect(headers(policies, set)['RateLimit-Policy']).toBe('100;w=1')
    },
  )

  describe.each(olderSets)('%s', (_, numbersOf) => {
    test.each([
      [
        'on a denial the denying policy with the longest wait B140',
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
      ['at least 1 on a denial B138', [policy({ allowed: false, retryAfterMs: 0 })], ['100', '40', '1']],
      [
        '0 when nothing is outstanding',
        [policy({ replenishAfterMs: 0, remaining: 100 })],
        ['100', '100', '0'],
      ],
      ['a bucket by its burst', [policy({ burst: 20, remaining: 4 })], ['20', '4', '30']],
      ['never a shadow', [policy({ shadow: true, remaining: 0 }), minute], ['100', '40', '30']],
    ])('the numbers are: %s', (_, policies, expected) => {
      expect(numbersOf(policies)).toEqual(expected)
    })
  })

  test.each([
    [1_800_000_030_000_000, '1800000030'],
    [1_800_000_030_000_001, '1800000031'],
    [1_800_000_030_999_999, '1800000031'],
    [1_800_000_031_000_000, '1800000031'],
  ])('legacy, epoch: microsecond %d is rounded up once, to second %s B136', (moreAtUs, reset) => {
    expect(headers([policy({ moreAtUs })], 'legacy')).toEqual({
      'X-RateLimit-Limit': '100',
      'X-RateLimit-Remaining': '40',
      'X-RateLimit-Reset': reset,
    })
  })
})

describe('every value parses by the grammar of its set, in whole seconds B142', () => {
  const never = policy({ name: 'never', allowed: false, retryAfterMs: Number.POSITIVE_INFINITY })
  const member = String.raw`"[ !#-[\]-~]*"(;[a-z]=\d{1,15})+`
  const number = /^\d{1,15}$/
  const three = (prefix: string) =>
    Object.fromEntries(['Limit', 'Remaining', 'Reset'].map((name) => [`${prefix}-${name}`, number]))
  const list = (member: string) => new RegExp(`^${member}(, ${member})*$`)
  const grammars: Record<HeaderSet, Record<string, RegExp>> = {
    'draft-8': { 'RateLimit-Policy': list(member), RateLimit: list(member) },
    'draft-7': {
      'RateLimit-Policy': list(String.raw`\d+;w=\d+`),
      RateLimit: /^limit=\d{1,15}, remaining=\d{1,15}, reset=\d{1,15}$/,
    },
    'draft-6': { 'RateLimit-Policy': list(String.raw`\d+;w=\d+`), ...three('RateLimit') },
    legacy: three('X-RateLimit'),
  }

  test.each(Object.entries(grammars) as [HeaderSet, Record<string, RegExp>][])('%s', (set, grammar) => {
    for (const policies of [[minute], [minute, never]]) {
      const written = headers(policies, set)
      expect(Object.keys(written)).toEqual(Object.keys(grammar))
      for (const [name, value] of Object.entries(written)) expect(value).toMatch(grammar[name] as RegExp)
    }
  })

  test('a reset is seconds from now, and that of legacy seconds since 1970 unless legacyReset is delta', () => {
    const written = headers([minute], 'draft-6', 'legacy')
    expect(written).toMatchObject({ 'RateLimit-Reset': '30', 'X-RateLimit-Reset': '1800000030' })
    expect(headersBy('delta', [minute], 'legacy')['X-RateLimit-Reset']).toBe('30')
  })
})

const fields: Record<HeaderSet, string[]> = {
  'draft-8': ['RateLimit-Policy', 'RateLimit'],
  'draft-7': ['RateLimit-Policy', 'RateLimit'],
  'draft-6': ['RateLimit-Policy', 'RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset'],
  legacy: ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'],
}

const sets = Object.keys(fields) as HeaderSet[]
const pairs = sets.flatMap((newer, i) => sets.slice(i + 1).map((older): HeaderSet[] => [newer, older]))

test.each([...pairs, sets].map((chosen) => [chosen]))(
  'where two of %j share a field the newest writes it, once, in whatever order they are given',
  (chosen) => {
    const written = headers([minute], ...chosen)
    expect(headers([minute], ...[...chosen].reverse())).toEqual(written)
    expect(new Set(Object.keys(written))).toEqual(new Set(chosen.flatMap((set) => fields[set])))
    for (const [name, value] of Object.entries(written)) {
      const newest = chosen.find((set) => fields[set].includes(name)) as HeaderSet
      expect(value).toBe(headers([minute], newest)[name])
    }
  },
)

test.each([
  ['no policy applied', []],
  ['all of them are shadows', [policy({ shadow: true, allowed: false })]],
])('there are none where %s', (_, policies) => {
  expect(headers(policies, ...sets)).toEqual({})
})

test('a shadow policy is left out of every set', () => {
  const shadow = policy({ name: 'trial', shadow: true, allowed: false, remaining: 0, retryAfterMs: 9000 })
  for (const set of sets) expect(headers([shadow, minute], set)).toEqual(headers([minute], set))
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

describe('a postponed denial', () => {
  const denying = policy({
    allowed: false,
    remaining: 0,
    retryAfterMs: 59_999,
    moreAtUs: 1.8e15 + 59_999_000,
  })
  const never = policy({ allowed: false, retryAfterMs: Number.POSITIVE_INFINITY })
  const denial = {
    allowed: false,
    retryAfterMs: 59_999,
    policies: [minute, denying, never],
  } as unknown as Decision

  test('tells of a later time wherever it tells one, and of nothing else', () => {
    const later = postpone(denial, 2002)
    expect(later).toEqual({
      ...denial,
      retryAfterMs: 62_001,
      policies: [minute, { ...denying, retryAfterMs: 62_001, moreAtUs: 1.8e15 + 62_001_000 }, never],
    })
    expect(retryAfterSeconds(later)).toBe(63)
    expect(headers(later.policies.slice(1, 2), ...sets)).toMatchObject({
      RateLimit: '"minute";r=0;t=63',
      'RateLimit-Reset': '63',
      'X-RateLimit-Reset': '1800000063',
    })
  })

  test('that no wait would help stays as it is', () => {
    const denial = { allowed: false, retryAfterMs: Number.POSITIVE_INFINITY, policies: [never] }
    expect(postpone(denial as unknown as Decision, 2002)).toEqual(denial)
  })
})

describe('the options headers and legacyReset', () => {
  test.each([[[]], [false]])('%j chooses none', (headers) => {
    expect(resolveHeaderSets(headers, 'epoch')).toEqual([])
  })

  test.each(sets)('%s may be given alone or in a list', (set) => {
    expect(resolveHeaderSets(set, 'epoch')).toEqual(resolveHeaderSets([set], 'epoch'))
  })

  test.each([true, null, 'draft-9', ['draft-8', 'toString'], 8])('headers: %p is refused', (headers) => {
    expect(() => resolveHeaderSets(headers, 'epoch')).toThrow(
      expect.objectContaining({
        code: 'SLUICE_BAD_OPTION',
        message: expect.stringContaining('draft-8, draft-7, draft-6, legacy'),
      }),
    )
  })

  test.each([true, null, 'seconds', 'toString'])('legacyReset: %p is refused', (legacyReset) => {
    expect(() => resolveHeaderSets('legacy', legacyReset)).toThrow(
      expect.objectContaining({
        code: 'SLUICE_BAD_OPTION',
        message: expect.stringContaining('`legacyReset`'),
      }),
    )
  })
})
