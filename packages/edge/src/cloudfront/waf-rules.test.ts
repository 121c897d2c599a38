import { definePlans, type Policy } from '@sluice/core'
import { type WafOptions, wafRules } from './index.js'

const logger = { warn() {} }

function write(options: WafOptions): ReturnType<typeof wafRules> {
  return wafRules({ logger, ...options })
}

test('a rule is in the form of `aws wafv2`, and denies as Sluice does', () => {
  const { rules } = write({
    name: 'api',
    algorithm: 'sliding-window-log',
    limit: 1000,
    window: '1m',
    priority: 7,
  })
  expect(rules).toEqual([
    {
      Name: 'api-api',
      Priority: 7,
      Statement: { RateBasedStatement: { Limit: 1000, EvaluationWindowSec: 60, AggregateKeyType: 'IP' } },
      Action: {
        Block: {
          CustomResponse: {
            ResponseCode: 429,
            ResponseHeaders: [
              { Name: 'Retry-After', Value: '60' },
              { Name: 'Cache-Control', Value: 'no-store' },
            ],
          },
        },
      },
      VisibilityConfig: {
        SampledRequestsEnabled: true,
        CloudWatchMetricsEnabled: true,
        MetricName: 'api-api',
      },
    },
  ])
})

test.each<[string, Policy, number, number]>([
  ['a window that WAF has', { algorithm: 'sliding-window-log', limit: 100, window: '2m' }, 100, 120],
  [
    'a window between two of WAF: the longer one',
    { algorithm: 'sliding-window-ring', limit: 100, window: '3m' },
    200,
    300,
  ],
  [
    'a longer window: ten minutes, in which all may come',
    { algorithm: 'sliding-window-log', limit: 100, window: '1d' },
    100,
    600,
  ],
  [
    'a shorter window: a minute, in which it comes again and again',
    { algorithm: 'sliding-window-log', limit: 5, window: '1s' },
    300,
    60,
  ],
  [
    'a window that does not divide a minute',
    { algorithm: 'sliding-window-log', limit: 5, window: '7s' },
    45,
    60,
  ],
  ['an edge that two windows meet at', { algorithm: 'fixed-window', limit: 100, window: '1m' }, 200, 60],
  ['the weighted window, which admits nearly as much', { limit: 100, window: '1m' }, 200, 60],
  [
    'a bucket: its burst and what flows in',
    { algorithm: 'token-bucket', limit: 100, window: '1m', burst: 20 },
    120,
    60,
  ],
  ['gcra, alike', { algorithm: 'gcra', limit: 100, window: '1h', burst: 50 }, 66, 600],
  [
    'a queue: its places and what departs',
    { algorithm: 'leaky-bucket', limit: 60, window: '1m', queue: 9 },
    70,
    60,
  ],
  [
    'less than WAF can: its smallest limit',
    { algorithm: 'sliding-window-log', limit: 3, window: '1m' },
    10,
    60,
  ],
])('the limit is the most that the policy admits in that time, of %s', (_, policy, limit, windowSec) => {
  const { rules, differences } = write({ ...policy, name: 'p' })
  expect(rules[0]?.Statement.RateBasedStatement).toMatchObject({
    Limit: limit,
    EvaluationWindowSec: windowSec,
  })
  expect(differences[0]).toContain(`becomes ${limit} per ${windowSec} s`)
})

test('a header is counted in place of the address', () => {
  const { rules, differences } = write({ limit: 100, window: '1m', key: { header: 'X-API-Key' } })
  expect(rules[0]?.Statement.RateBasedStatement).toMatchObject({
    AggregateKeyType: 'CUSTOM_KEYS',
    CustomKeys: [{ Header: { Name: 'x-api-key', TextTransformations: [{ Priority: 0, Type: 'NONE' }] } }],
  })
  expect(differences.join('\n')).toContain('a request without it not at all')
})

test('a shadow counts and denies nothing', () => {
  const { rules, differences } = write({ limit: 100, window: '1m', shadow: true })
  expect(rules[0]?.Action).toEqual({ Count: {} })
  expect(differences.join('\n')).toContain('is a shadow')
})

test('each policy has a rule of its own, with its priority and a name that WAF takes', () => {
  const policies = [
    { name: 'per second', limit: 10, window: '1s' },
    { name: 'per/second', limit: 20, window: '10s' },
    { limit: 1000, window: '1h' },
  ]
  const { rules } = write({ name: 'my api', policies, priority: 1 })
  expect(rules.map(({ Name, Priority }) => [Name, Priority])).toEqual([
    ['my-api-per-second', 1],
    ['my-api-per-second-2', 2],
    ['my-api-1000-per-1h', 3],
  ])
})

const plans = {
  free: { limit: 10, window: '1m' },
  pro: [{ limit: 500, window: '1m' }],
  all: 'unlimited',
} as const

test.each([
  ['as they are', plans],
  ['made by definePlans', definePlans(plans)],
])('of plans, %s, it is the one that is named', (_, given) => {
  const { rules } = write({ plans: given, plan: 'pro' })
  expect(rules.map(({ Statement }) => Statement.RateBasedStatement.Limit)).toEqual([1000])
})

test.each<[string, Policy, string]>([
  ['refuses everything', { limit: 0, window: '1m' }, 'refuses everything'],
  ['admits more than WAF can count', { limit: 1_000_000_000, window: '1s' }, 'above what WAF can count'],
])('a policy that %s has no rule, and that is said', (_, policy, said) => {
  const { rules, differences } = write(policy)
  expect(rules).toEqual([])
  expect(differences[0]).toContain(said)
})

test('what WAF cannot do is returned and written, the same', () => {
  const lines: string[] = []
  const { differences } = write({
    name: 'api',
    limit: 100,
    window: '1m',
    logger: { warn: (line) => lines.push(line) },
  })
  expect(lines).toEqual(differences.map((difference) => `sluice: WAF rules of "api": ${difference}`))
  for (const word of ['late', 'costs', 'IPv6', 'Retry-After', '10,000', '2.00 times its rate']) {
    expect(differences.join('\n')).toContain(word)
  }
})

test.each<[string, unknown, RegExp]>([
  ['no options', undefined, /`limit` is undefined/],
  ['a key that is none', { limit: 1, window: '1m', key: 'header' }, /`key`/],
  ['a header with a space', { limit: 1, window: '1m', key: { header: 'x y' } }, /`key` is "x y"/],
  ['a priority below zero', { limit: 1, window: '1m', priority: -1 }, /`priority` is -1/],
  [
    'a plan without plans',
    { limit: 1, window: '1m', plan: 'pro' },
    /`plan` is "pro"\. Expected `plans` beside it/,
  ],
  ['plans without a plan', { plans }, /`plan` is undefined/],
  ['an unlimited plan', { plans, plan: 'all' }, /`plan` is "all"/],
  ['a plan that is none', { plans, plan: 'constructor' }, /`plan` is "constructor"/],
  ['two forms', { policies: [{ limit: 1, window: '1m' }], limit: 1 }, /`limit` is "given together"/],
  [
    'policies and plans',
    { policies: [{ limit: 1, window: '1m' }], plans, plan: 'pro' },
    /`plans` is "given together"/,
  ],
  ['no policies', { policies: [] }, /`policies` is an array of 0/],
  ['a misspelt option', { limit: 1, window: '1m', prioirty: 1 }, /Unknown option `prioirty`/],
  ['a name of no ASCII', { name: 'é', limit: 1, window: '1m' }, /`name` is "é"/],
  ['a logger that is none', { limit: 1, window: '1m', logger: {} }, /`logger`/],
])('is not written with %s', (_, options, message) => {
  expect(() => wafRules(options as WafOptions)).toThrow(message)
})
