import { CheckMaker } from '../check-maker.js'
import { type Policy, resolvePolicy } from '../policy.js'
import type { Check } from '../store.js'
import { KeyTable, none } from './key-table.js'

const minute = resolvePolicy({ algorithm: 'fixed-window', limit: 10, window: '1m' })
const used = (units: number) => ({ startUs: 60_000_000, used: units })

/** A check without its parts, as somebody other than a limiter makes it. */
const whole = (key: string, policy = minute): Check => ({ key, policy, least: 1, most: 1 })
const made = (owner: string, policy = minute): Check =>
  new CheckMaker('default').make([policy], owner, 1)[0] as Check

function hold(table: KeyTable, check: Check, units = 1): number {
  const slot = table.add(check)
  table.write(slot, check.policy, used(units), units / check.policy.burst)
  return slot
}

describe('a key', () => {
  it.each(['ip:203.0.113.77', 'a', '%', 'a%20b', '1:'])(
    'is the same in parts and as a whole: %p',
    (owner) => {
      const parts = made(owner)
      const table = new KeyTable(10)
      const slot = hold(table, parts)
      expect(table.find(whole(parts.key))).toBe(slot)
      table.remove(slot)
      expect(table.find(parts)).toBe(none)
      expect(table.find(whole(parts.key))).toBe(none)
      const again = hold(table, whole(parts.key))
      expect(table.find(parts)).toBe(again)
    },
  )

  it('is that of one policy alone, and of any form', () => {
    const hour = resolvePolicy({ algorithm: 'fixed-window', limit: 10, window: '1h' })
    const keys = [
      made('a'),
      made('a', hour),
      whole('a'),
      whole('{a'),
      whole('1:{a'),
      whole('1:{a}'),
      whole('}'),
    ]
    const table = new KeyTable(10)
    const slots = keys.map((key) => hold(table, key))
    expect(new Set(slots).size).toBe(keys.length)
    expect(keys.map((key) => table.find(key))).toEqual(slots)
  })
})

describe('a slot', () => {
  it('holds the state of each key apart, over many pages', () => {
    const table = new KeyTable(5000)
    const checks = Array.from({ length: 5000 }, (_, i) => made(`k${i}`))
    for (const [i, check] of checks.entries()) hold(table, check, i % 10)
    expect(table.size).toBe(5000)
    for (const [i, check] of checks.entries()) {
      expect(table.stateOf(table.find(check), minute)).toEqual(used(i % 10))
    }
  })

  it('is used again, whole, once its key is gone', () => {
    const table = new KeyTable(10)
    const log = resolvePolicy({ algorithm: 'sliding-window-log', limit: 10, window: '1m' })
    const slot = table.add(made('a', log))
    table.write(slot, log, 'the state of a log', 1)
    table.remove(slot)
    expect(table.size).toBe(0)
    expect(table.add(made('b', log))).toBe(slot)
    expect(table.stateOf(slot, log)).toBeUndefined()
  })

  it.each<Policy['algorithm']>(['gcra', 'sliding-window-log'])(
    'has no state for another algorithm: %s',
    (algorithm) => {
      const table = new KeyTable(10)
      const slot = hold(table, made('a'))
      expect(table.stateOf(slot, resolvePolicy({ algorithm, limit: 10, window: '1m' }))).toBeUndefined()
    },
  )

  it('knows the policy that wrote it last, of ever so many', () => {
    const table = new KeyTable(10)
    const slots = ['a', 'b'].map((owner) => hold(table, made(owner)))
    for (let limit = 1; limit <= 100; limit++) {
      const policy = minute.withLimit(limit)
      for (const slot of slots) table.write(slot, policy, used(1), 0)
      expect(slots.map((slot) => table.policyOf(slot))).toEqual([policy, policy])
    }
  })
})

describe('a sample', () => {
  it('has some keys of each rank, those least used first, and none that is gone', () => {
    const table = new KeyTable(100)
    const slots = [0, 3, 5, 8, 10].flatMap((units) =>
      Array.from({ length: 8 }, (_, i) => hold(table, made(`${units}-${i}`), units)),
    )
    table.remove(slots[0] as number)
    table.write(slots[1] as number, minute, used(10), 1)
    const shares = table.sample(2).map((slot) => (table.stateOf(slot, minute) as { used: number }).used)
    expect(shares).toEqual([0, 0, 3, 3, 5, 5, 8, 8, 10, 10])
    expect(table.sample(100)).toHaveLength(39)
    expect(table.sample(100)).not.toContain(slots[0])
  })
})
