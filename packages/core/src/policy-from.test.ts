import { blockPolicy } from './algorithms/block/block.js'
import { algorithmNames } from './algorithms/index.js'
import { type Policy, type ResolvedPolicy, resolvePolicy } from './policy.js'
import { policyFrom } from './policy-from.js'

/** What another process makes of a policy. */
const sent = ({ data }: ResolvedPolicy): ResolvedPolicy => policyFrom(JSON.parse(JSON.stringify(data)))
const countsBy = ({ wire, limit, windowMs, burst, shadow }: ResolvedPolicy) => [
  wire,
  limit,
  windowMs,
  burst,
  shadow,
]

describe('a policy made again of its data', () => {
  const options: [Policy][] = [
    ...algorithmNames.map((algorithm): [Policy] => [{ algorithm, limit: 100, window: '90s' }]),
    [{ limit: 0, window: '1m', shadow: true }],
    [{ algorithm: 'gcra', limit: 100, window: '1m', burst: 7, name: 'burst', onStoreError: 'deny' }],
    [{ algorithm: 'token-bucket', limit: 100, window: '1m', burst: 900 }],
    [{ algorithm: 'leaky-bucket', limit: 100, window: '1m', queue: 3 }],
    [{ algorithm: 'leaky-bucket', limit: 100, window: '1m', maxWaitMs: 900 }],
    [{ algorithm: 'sliding-window-ring', limit: 100, window: '1m', slices: 7 }],
    [{ algorithm: 'fixed-window', limit: 100, window: '1m', align: 'first-request' }],
  ]

  test.each(options)('counts as the first one does: %j', (options) => {
    const policy = resolvePolicy(options)
    for (const variant of [policy, policy.withLimit(41), policy.share(3)]) {
      expect(countsBy(sent(variant))).toEqual(countsBy(variant))
    }
  })

  test.each([0, 5000])('is a block where that is one, of %d ms', (lengthMs) => {
    expect(countsBy(sent(blockPolicy(lengthMs)))).toEqual(countsBy(blockPolicy(lengthMs)))
  })

  test('is checked like any other', () => {
    expect(() => policyFrom({ limit: -1, window: '1m' })).toThrow('limit')
  })
})
