import type { FeedEntry, FeedSnapshot } from '../feed/index.js'
import { keyValueChanges } from './index.js'

const issuedAtMs = 1_800_000_000_400
const policy = { name: 'p', algorithm: 'fixed-window', limit: 10, windowMs: 60_000, burst: 10 } as const
const entry: FeedEntry = { limiter: 'api', key: 'k', waitMs: 60_000, policies: [policy] }

function changesFor(entries: readonly Partial<FeedEntry>[], present?: Parameters<typeof keyValueChanges>[1]) {
  const snapshot: FeedSnapshot = {
    source: 's',
    sequence: 1,
    issuedAtMs,
    entries: entries.map((changes) => ({ ...entry, ...changes })),
  }
  return keyValueChanges(snapshot, present)
}

test('each key is put with the second in which it is over, and what replies tell of its policies', () => {
  const bucket = { ...policy, name: 'b', algorithm: 'gcra', burst: 20 } as const
  expect(
    changesFor([
      {},
      { key: 'blocked', waitMs: 1000, policies: [] },
      { key: 'b', policies: [policy, bucket] },
    ]),
  ).toEqual([
    {
      Deletes: [],
      Puts: [
        { Key: 'api/k', Value: '[1800000061,["p",10,60]]' },
        { Key: 'api/b', Value: '[1800000061,["p",10,60],["b",20,120]]' },
        { Key: 'api/blocked', Value: '[1800000002]' },
      ],
    },
  ])
})

test('what is there already stays, what is no longer listed goes first', () => {
  const present = [
    { Key: 'api/k', Value: '[1800000061,["p",10,60]]' },
    { Key: 'api/old', Value: '[1]' },
    { Key: 'api/changed', Value: '[2]' },
  ]
  expect(changesFor([{}, { key: 'changed' }], present)).toEqual([
    { Puts: [], Deletes: [{ Key: 'api/old' }] },
    { Puts: [{ Key: 'api/changed', Value: '[1800000061,["p",10,60]]' }], Deletes: [] },
  ])
  expect(changesFor([{}], present.slice(0, 1))).toEqual([])
})

test('calls change fifty keys at most', () => {
  const entries = Array.from({ length: 101 }, (_, i) => ({ key: `k${i}` }))
  expect(changesFor(entries).map(({ Puts }) => Puts.length)).toEqual([50, 50, 1])
})

test('what no store holds is left out: long keys, long values', () => {
  const policies = Array.from({ length: 20 }, () => ({ ...policy, name: 'p'.repeat(64) }))
  const fits = { key: 'é'.repeat(254) }
  expect(changesFor([{ key: `${fits.key}é` }, { policies }, fits])[0]?.Puts).toMatchObject([
    { Key: `api/${fits.key}` },
  ])
})

test('of more than 5 MB the keys with the longest waits are held', () => {
  const entries = Array.from({ length: 60_000 }, (_, i) => ({
    key: `${i}`.padStart(100, '0'),
    waitMs: i * 1000,
  }))
  const puts = changesFor(entries).flatMap(({ Puts }) => Puts)
  const bytes = puts.reduce((sum, { Key, Value }) => sum + Key.length + Value.length, 0)
  expect(bytes).toBeLessThanOrEqual(5_000_000)
  expect(bytes).toBeGreaterThan(4_999_000)
  expect(puts[0]?.Key).toMatch(/059999$/)
  expect(puts.some(({ Key }) => /000000$/.test(Key))).toBe(false)
})

test('no snapshot is refused', () => {
  expect(() => keyValueChanges({} as never)).toThrow(/`snapshot`/)
})
