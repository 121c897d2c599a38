import { type Check, resolvePolicy } from '@sluice/core'
import { decodeReply, encodeCall, type SentGroup } from './wire.js'

const policy = resolvePolicy({ algorithm: 'gcra', limit: 10, window: '1h' })
const other = policy.withLimit(20)

function charge(
  keys: string,
  changes: Partial<Check> & { mode?: 'peek'; notAfterUs?: number } = {},
): SentGroup {
  const { mode = 'charge', notAfterUs = 1e15, ...check } = changes
  const parts = [...keys].map((key) => ({ key, policy, least: 1, most: 1, ...check }))
  return { group: { mode, parts }, keys: [...keys], notAfterUs }
}

/** Of each run: how many groups, checks of a group, how far its keys are apart, and the place of the first. */
function runsOf(groups: readonly SentGroup[]): number[][] {
  const { argument } = encodeCall(groups)
  const view = new DataView(argument.buffer)
  const runs: number[][] = []
  for (let at = 0; at < argument.length; at += 15 + 77 * (runs.at(-1)?.[1] as number)) {
    runs.push([9, 11, 13, 15].map((offset) => view.getUint16(at + offset, true)))
  }
  return runs
}

test.each<[string, SentGroup[], number[][]]>([
  ['equal groups of keys of their own', ['a', 'b', 'c'].map((key) => charge(key)), [[3, 1, 1, 1]]],
  ['equal groups of one key', ['a', 'a', 'a'].map((key) => charge(key)), [[3, 1, 0, 1]]],
  ['equal groups of several checks', ['ab', 'cd', 'ef'].map((keys) => charge(keys)), [[3, 2, 2, 1]]],
])('%s are one run', (_, groups, runs) => {
  expect(runsOf(groups)).toEqual(runs)
})

test.each<[string, SentGroup]>([
  ['mode', charge('b', { mode: 'peek' })],
  ['deadline', charge('b', { notAfterUs: 2e15 })],
  ['policy', charge('b', { policy: other })],
  ['most', charge('b', { most: 2 })],
  ['least', charge('b', { least: 0 })],
])('a group of another %s begins a run', (_, group) => {
  expect(runsOf([charge('a'), group])).toHaveLength(2)
})

test('a group of more checks, or whose keys are at other distances, begins a run', () => {
  expect(runsOf([charge('a'), charge('bc')])).toHaveLength(2)
  expect(runsOf(['a', 'b', 'a', 'c'].map((key) => charge(key)))).toEqual([
    [2, 1, 1, 1],
    [2, 1, 2, 1],
  ])
  expect(runsOf(['ab', 'ac', 'cb'].map((keys) => charge(keys)))).toHaveLength(3)
})

test('hundreds of groups of many policies fit into a call', () => {
  const groups = Array.from({ length: 300 }, (_, i) => charge('abc', { policy: i % 2 ? policy : other }))
  expect(runsOf(groups)).toHaveLength(300)
})

test('a reply has the verdicts of each group, and none of one that came late', () => {
  const numbers = [5, 2 * 3 + 1, 7, 100, 8, 9, -1, 0, 0, 0, 0, 0, 7, 200, 8, 9]
  const bytes = new Uint8Array(3 + 8 * numbers.length)
  for (const [i, number] of numbers.entries()) new DataView(bytes.buffer).setFloat64(3 + 8 * i, number, true)
  const common = { remaining: 7, replenishUs: 8, resetUs: 9, atUs: 5 }
  expect(
    decodeReply(
      bytes.subarray(3),
      ['a', 'b', 'c'].map((key) => charge(key)),
    ),
  ).toEqual({
    atUs: 5,
    verdicts: [
      [{ allowed: true, granted: 3, retryUs: 0, delayUs: 100, ...common }],
      undefined,
      [{ allowed: false, granted: 0, retryUs: 200, delayUs: 0, ...common }],
    ],
  })
})
