import fc from 'fast-check'
import { checksOf } from '../test/shared-store.js'
import { CheckIndex } from './check-index.js'
import { resolvePolicy } from './policy.js'
import type { Check } from './store.js'

const a = resolvePolicy({ name: 'a', limit: 5, window: '1m' })
const b = resolvePolicy({ name: 'b', limit: 5, window: '1m' })

test('finds a value by equal checks, whichever objects they are and whatever they cost', () => {
  const index = new CheckIndex<string>()
  index.add(checksOf([a, b]), 'both')
  const copies = [
    resolvePolicy({ name: 'a', limit: 5, window: '1m' }),
    resolvePolicy({ name: 'b', limit: 5, window: '1m' }),
  ]
  expect(index.find(checksOf(copies, 3))).toBe('both')
})

test.each<[string, readonly Check[]]>([
  ['another key', checksOf([a, b], 1, 'other')],
  ['fewer policies', checksOf([a])],
  ['another order', checksOf([b, a])],
  ['another limit', checksOf([a.withLimit(6), b])],
  [
    'a policy that only reports',
    checksOf([a, resolvePolicy({ name: 'b', limit: 5, window: '1m', shadow: true })]),
  ],
  [
    'another algorithm',
    checksOf([a, resolvePolicy({ name: 'b', limit: 5, window: '1m', algorithm: 'gcra' })]),
  ],
])('does not find it by %s', (_, checks) => {
  const index = new CheckIndex<string>()
  index.add(checksOf([a, b]), 'both')
  expect(index.find(checks)).toBeUndefined()
})

test('holds, finds, takes and keeps as a plain list would', () => {
  const policies = [a, b, a.withLimit(6)]
  const checks = fc
    .record({ key: fc.constantFrom('x', 'y', 'z'), chosen: fc.subarray(policies, { minLength: 1 }) })
    .map(({ key, chosen }) => checksOf(chosen, 1, key))
  const step = fc.oneof(
    checks.map((given) => ({ add: given, take: undefined, keep: undefined })),
    checks.map((given) => ({ add: undefined, take: given.map(({ key }) => key), keep: undefined })),
    fc.nat(9).map((keep) => ({ add: undefined, take: undefined, keep })),
  )
  const same = (one: readonly Check[], other: readonly Check[]): boolean =>
    one.length === other.length &&
    one.every(({ key, policy }, i) => other[i]?.key === key && other[i]?.policy === policy)
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const index = new CheckIndex<number>()
      let list: { checks: readonly Check[]; value: number }[] = []
      for (const [value, { add, take, keep }] of steps.entries()) {
        if (add && !index.find(add)) {
          index.add(add, value)
          list.push({ checks: add, value })
        }
        if (take) {
          const isTaken = (entry: { checks: readonly Check[] }): boolean =>
            entry.checks.some(({ key }) => take.includes(key))
          const taken = list.filter(isTaken).map((entry) => entry.value)
          expect(index.take(take).sort()).toEqual(taken.sort())
          list = list.filter((entry) => !isTaken(entry))
        }
        if (keep !== undefined) {
          index.keep((kept) => kept % 10 >= keep)
          list = list.filter((entry) => entry.value % 10 >= keep)
        }
        expect(index.size).toBe(list.length)
        expect(index.values().sort()).toEqual(list.map((entry) => entry.value).sort())
        for (const entry of list) {
          expect(index.find(entry.checks)).toBe(list.find((other) => same(other.checks, entry.checks))?.value)
        }
      }
    }),
  )
})
