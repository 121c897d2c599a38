import { type Check, type Refund, resolvePolicy, type Verdict } from '@sluice/core'
import { allOrNothing } from './all-or-nothing.js'

const plain = resolvePolicy({ algorithm: 'fixed-window', limit: 10, window: '1h' })
const shadow = resolvePolicy({ algorithm: 'fixed-window', limit: 10, window: '1h', shadow: true })

function check(key: string, policy = plain): Check {
  return { key, policy, least: 2, most: 2 }
}

function verdict(allowed: boolean, granted = allowed ? 2 : 0, remaining = 5): Verdict {
  const retryUs = allowed ? 0 : 7000
  return { allowed, granted, remaining, retryUs, replenishUs: 1, resetUs: 8000, delayUs: 0, atUs: 100 }
}

const granted = verdict(true)
const denied = verdict(false)
const failure = new Error('down')
const lateError = new Error('late')
const never = new Promise<never>(() => {})
/** Far longer than a test takes. */
const longMs = 60_000

type Answers = Readonly<Record<string, Promise<readonly Verdict[]>>>

/** Asks one group for each key; tells what was decided, or the error, and what was given back. */
async function run(answers: Answers, { waitMs = longMs, policy = plain } = {}) {
  const refunds: Refund[] = []
  const ask = {
    decide: ([one]: readonly Check[]) => answers[one?.key ?? ''] as Promise<readonly Verdict[]>,
    refund: async (given: readonly Refund[]) => {
      refunds.push(...given)
    },
  }
  const groups = Object.keys(answers).map((key) => [check(key, key.startsWith('shadow') ? shadow : policy)])
  const result = await allOrNothing(groups, ask, waitMs, () => lateError).catch((error: Error) => error)
  return { result: result instanceof Error ? result.message : result.flat(), refunds }
}

describe('several groups', () => {
  test('that all grant are charged as they say', async () => {
    const { result, refunds } = await run({ a: Promise.resolve([granted]), b: Promise.resolve([granted]) })
    expect(result).toEqual([granted, granted])
    expect(refunds).toEqual([])
  })

  test('of which one denies get back what they granted, with what remains then', async () => {
    const { result, refunds } = await run({ a: Promise.resolve([granted]), b: Promise.resolve([denied]) })
    expect(result).toEqual([{ ...granted, granted: 0, remaining: 7 }, denied])
    expect(refunds).toEqual([{ key: 'a', policy: plain, units: 2, atUs: 100, resetUs: 8000 }])
  })

  test('of which only a shadow policy denies are charged', async () => {
    const { result, refunds } = await run({
      a: Promise.resolve([granted]),
      shadow: Promise.resolve([denied]),
    })
    expect(result).toEqual([granted, denied])
    expect(refunds).toEqual([])
  })

  test('of which one fails reject with its error, and get back what they granted', async () => {
    const { result, refunds } = await run({ a: Promise.resolve([granted]), b: Promise.reject(failure) })
    expect(result).toBe('down')
    expect(refunds).toMatchObject([{ key: 'a', units: 2 }])
  })

  test.each([
    ['fails', Promise.reject(failure), longMs],
    ['does not answer', never, 20],
  ])('of which one denies and another %s are denied, with no promise for the other', async (_, b, waitMs) => {
    b.catch(() => {})
    const { result } = await run({ a: Promise.resolve([denied]), b }, { waitMs })
    expect(result).toMatchObject([denied, { failed: true, granted: 0, atUs: 100 }])
  })

  test('of which one does not answer reject, and get back what was granted, also later', async () => {
    let answer: (verdicts: readonly Verdict[]) => void = () => {}
    const b = new Promise<readonly Verdict[]>((resolve) => {
      answer = resolve
    })
    const { result, refunds } = await run({ a: Promise.resolve([granted]), b }, { waitMs: 20 })
    expect(result).toBe('late')
    expect(refunds).toMatchObject([{ key: 'a', units: 2 }])
    answer([granted])
    await new Promise(setImmediate)
    expect(refunds).toMatchObject([{ key: 'a' }, { key: 'b', units: 2 }])
  })

  test('of a lease take the least that one of them grants', async () => {
    const { result, refunds } = await run({
      a: Promise.resolve([verdict(true, 9, 1)]),
      b: Promise.resolve([verdict(true, 4, 0)]),
      shadow: Promise.resolve([verdict(true, 2, 3)]),
    })
    expect(result).toMatchObject([
      { granted: 4, remaining: 6 },
      { granted: 4, remaining: 0 },
      { granted: 2, remaining: 3 },
    ])
    expect(refunds).toMatchObject([{ key: 'a', units: 5 }])
  })

  test('deny in time though nothing can be given back', async () => {
    const ask = {
      decide: async ([one]: readonly Check[]) => [one?.key === 'a' ? granted : denied],
      refund: () => never,
    }
    const verdicts = await allOrNothing([[check('a')], [check('b')]], ask, 20, () => lateError)
    expect(verdicts[1]).toEqual([denied])
  })
})
