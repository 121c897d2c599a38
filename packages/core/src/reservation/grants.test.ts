import { checksOf } from '../../test/shared-store.js'
import { blockPolicy } from '../algorithms/block/block.js'
import { resolvePolicy } from '../policy.js'
import type { Verdict } from '../store.js'
import { type Grant, Grants } from './grants.js'

const policies = [
  resolvePolicy({ name: 'a', limit: 100, window: '1m' }),
  resolvePolicy({ name: 'trial', limit: 100, window: '1m', shadow: true }),
  blockPolicy(),
]
const checks = checksOf(policies)

function grant(units: number, atUs: number, trial: number): Grant {
  const verdicts = [units, trial, units].map(
    (granted) => ({ allowed: true, granted, atUs, resetUs: 60_000_000 }) as unknown as Verdict,
  )
  return { unspent: units, endsMs: 1000, windowEndsMs: 1000, arrivedMs: 0, verdicts }
}

test('spends the oldest first, over several', () => {
  const grants = new Grants()
  const [older, newer] = [grant(5, 1, 5), grant(7, 2, 7)]
  grants.add(older)
  grants.add(newer)
  grants.take(3)
  expect(grants).toMatchObject({ units: 9, oldest: older })
  grants.take(4)
  expect(grants).toMatchObject({ units: 5, oldest: newer })
  grants.take(5)
  expect(grants).toMatchObject({ units: 0, oldest: undefined })
})

test('gives back of each charge its own, of a policy that only reports no more than it was charged, of a block nothing', () => {
  const grants = new Grants()
  grants.add(grant(5, 1, 0))
  grants.add(grant(7, 2, 3))
  grants.take(1)
  const given = grants.refundsOf(9, checks).map(({ policy, units, atUs }) => [policy.name, units, atUs])
  expect(given).toEqual([
    ['a', 4, 1],
    ['a', 5, 2],
    ['trial', 3, 2],
  ])
})
