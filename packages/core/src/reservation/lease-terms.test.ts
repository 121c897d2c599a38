import { errorOf } from '../../test/error-of.js'
import { SharedStore } from '../../test/shared-store.js'
import { Limiter } from '../limiter.js'
import type { LimiterOptions } from '../limiter-options.js'
import { type Policy, resolvePolicy } from '../policy.js'
import { leaseTermsOf } from './lease-terms.js'
import type { Reserve } from './reserve.js'

const fixed = (more: Partial<Policy> = {}): Policy => ({
  algorithm: 'fixed-window',
  limit: 10,
  window: '1m',
  ...more,
})
const terms = (policies: readonly Policy[], reserve?: Reserve) =>
  leaseTermsOf(
    policies.map((policy) => resolvePolicy(policy)),
    reserve,
  )

test.each<[string, readonly Policy[], Reserve | undefined, object | undefined]>([
  ['50 units for 5 s', [fixed()], true, { max: 50, ttlMs: 5000 }],
  ['what is given', [fixed()], { max: 7, ttlMs: 90 }, { max: 7, ttlMs: 90 }],
  ['no longer than the window', [fixed({ window: '2s' })], true, { max: 50, ttlMs: 2000 }],
  ['nothing unless asked for', [fixed()], undefined, undefined],
  ['nothing with false', [fixed()], false, undefined],
  [
    'what the policy says, before the limiter',
    [fixed({ reserve: { max: 3 } })],
    true,
    { max: 3, ttlMs: 5000 },
  ],
  ['nothing where the policy says false', [fixed({ reserve: false })], true, undefined],
  [
    'the smallest size and the shortest life of several policies',
    [fixed({ reserve: { max: 9, ttlMs: 800 } }), fixed({ reserve: { max: 20, ttlMs: 300 } })],
    undefined,
    { max: 9, ttlMs: 300 },
  ],
  ['nothing where all policies only report', [fixed({ shadow: true })], true, undefined],
])('leases %s', (_, policies, reserve, expected) => {
  const given = terms(policies, reserve)
  if (expected) expect(given).toMatchObject(expected)
  else expect(given).toBeUndefined()
})

test.each<[string, Partial<LimiterOptions & Policy>, RegExp]>([
  [
    'sliding-window-log',
    { ...fixed({ algorithm: 'sliding-window-log' }), reserve: true },
    /`reserve` is true.*sliding-window-log/,
  ],
  [
    'leaky-bucket',
    { ...fixed({ algorithm: 'leaky-bucket' }), reserve: { max: 5 } },
    /`reserve` is .*leaky-bucket/,
  ],
  [
    'one of two policies alone',
    { policies: [fixed({ name: 'a', reserve: true }), fixed({ name: 'b' })] },
    /`reserve` is set on policy "a" and not on all others/,
  ],
  [
    'a policy of a plan beside one that cannot',
    { plans: { pro: [fixed(), fixed({ name: 'queue', algorithm: 'leaky-bucket' })] }, reserve: true },
    /leaky-bucket/,
  ],
  [
    'no unit',
    { ...fixed(), reserve: { max: 0 } },
    /`reserve.max` is 0. Expected a whole number from 1 to 1,000,000/,
  ],
  ['half a unit', { ...fixed(), reserve: { max: 0.5 } }, /`reserve.max` is 0.5/],
  ['too many units', { ...fixed(), reserve: { max: 1_000_001 } }, /`reserve.max` is 1000001/],
  ['no time', { ...fixed(), reserve: { ttlMs: 0 } }, /`reserve.ttlMs` is 0. Expected whole milliseconds/],
  ['too much time', { ...fixed(), reserve: { ttlMs: 3_600_001 } }, /`reserve.ttlMs` is 3600001/],
  [
    'a word',
    { ...fixed(), reserve: 'yes' as never },
    /`reserve` is "yes". Expected true, false, or an object/,
  ],
  ['null', { ...fixed(), reserve: null as never }, /`reserve` is null/],
  ['a number of a policy', { policies: [fixed({ reserve: 5 as never })] }, /`reserve` is 5/],
  ['processes in halves', { ...fixed(), reserve: true, nodes: 1.5 }, /`nodes` is 1.5/],
])('%s cannot be leased: an error at construction', async (_, options, message) => {
  const error = await errorOf(() => new Limiter({ store: new SharedStore(), ...options }))
  expect(error).toMatchObject({ code: 'SLUICE_BAD_OPTION' })
  expect(error.message).toMatch(message)
})
