import { type Check, resolvePolicy, SluiceError, type Verdict } from '@sluice/core'
import { Coalescer } from './coalescer.js'
import { ServerClock } from './server-clock.js'
import { slotOf } from './slot.js'
import type { Topology } from './topology.js'
import type { Call, Group } from './wire.js'

const policy = resolvePolicy({ algorithm: 'fixed-window', limit: 10, window: '1h' })
const check = (key: string): Check => ({ key, policy, least: 1, most: 1 })
const charge = (...keys: string[]): Group => ({ mode: 'charge', parts: keys.map(check) })

/** The runs of a call: what they share, and how many groups. */
function runsOf({ argument }: Call): { notAfterUs: number; mode: number; groups: number; count: number }[] {
  const view = new DataView(argument.buffer, argument.byteOffset, argument.byteLength)
  const runs = []
  for (let at = 0; at < view.byteLength; ) {
    const count = view.getUint16(at + 11, true)
    const [mode, groups] = [view.getUint8(at + 8), view.getUint16(at + 9, true)]
    runs.push({ notAfterUs: view.getFloat64(at, true), mode, groups, count })
    at += 15 + 77 * count
  }
  return runs
}

function groupsOf(call: Call): number {
  return runsOf(call).reduce((sum, { groups }) => sum + groups, 0)
}

/** Calls that were sent, each of which is answered by hand. */
class FakeLine {
  readonly clock = new ServerClock()
  readonly topology = {
    sharded: false,
    slotOf: (key: string) => (this.topology.sharded ? slotOf(key) : 0),
    clockOf: () => this.clock,
  } as unknown as Topology & { sharded: boolean }
  readonly calls: { call: Call; resolve(reply: Uint8Array): void; reject(error: Error): void }[] = []
  readonly writes: number[] = []
  link: Promise<void> | undefined

  linked(): Promise<void> | undefined {
    return this.link
  }

  corked(send: () => void): void {
    const before = this.calls.length
    send()
    this.writes.push(this.calls.length - before)
  }

  run(call: Call): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.calls.push({ call, resolve, reject })
    })
  }

  get sizes(): number[] {
    return this.calls.map(({ call }) => groupsOf(call))
  }

  /** Answers a call; the groups of which `late` are told that they came too late. */
  answer(i: number, late = (_notAfterUs: number): boolean => false): void {
    const { call, resolve } = this.calls[i] as (typeof this.calls)[number]
    const numbers = [1e15]
    for (const { notAfterUs, groups, count } of runsOf(call)) {
      for (let n = 0; n < groups * count; n++) numbers.push(late(notAfterUs) ? -1 : 3, 9, 0, 0, 0)
    }
    resolve(new Uint8Array(Float64Array.from(numbers).buffer))
  }

  fail(i: number, message: string): void {
    const cause = new Error(message)
    this.calls[i]?.reject(new SluiceError('SLUICE_STORE_FAILED', `Redis failed: ${message}`, { cause }))
  }
}

let line: FakeLine
let coalescer: Coalescer
beforeEach(() => {
  line = new FakeLine()
  coalescer = new Coalescer(line)
})

const longMs = 60_000
const turn = (): Promise<void> => new Promise(setImmediate)

function ask(group: Group, timeoutMs = longMs): Promise<readonly Verdict[]> {
  return coalescer.ask(
    group,
    group.parts.map(({ key }) => key),
    timeoutMs,
  )
}

/** One call on its way, so that those that follow wait for the end of the turn. */
function occupy(): Promise<readonly Verdict[]> {
  const first = ask(charge('first'))
  expect(line.calls).toHaveLength(1)
  return first
}

describe('groups', () => {
  test('that find nothing on its way are sent at once', () => {
    ask(charge('a')).catch(() => {})
    expect(line.sizes).toEqual([1])
  })

  test.each([
    [1, [1]],
    [7, [7]],
    [8, [8]],
    [9, [8, 1]],
    [16, [8, 8]],
    [40, [20, 20]],
    [64, [32, 32]],
    [65, [32, 32, 1]],
    [130, [32, 32, 32, 32, 2]],
  ])('of one turn, %i beside one that is on its way, go out in calls of %j', async (count, sizes) => {
    void occupy()
    for (let i = 0; i < count; i++) void ask(charge(`k${i}`))
    await turn()
    expect(line.sizes.slice(1)).toEqual(sizes)
  })

  test('of one turn go out before its end where they fill two calls', async () => {
    void occupy()
    for (let i = 0; i < 150; i++) void ask(charge(`k${i}`))
    expect(line.sizes).toEqual([1, 32, 32, 32, 32])
    await turn()
    expect(line.sizes.slice(5)).toEqual([11, 11])
  })

  test('of a slot of a Cluster share calls, and those of one turn a write', async () => {
    line.topology.sharded = true
    void occupy()
    for (const key of ['{a}1', '{b}1', '{a}2', '{b}2', '{a}3']) void ask(charge(key))
    await turn()
    expect(line.calls.slice(1).map(({ call }) => call.keys)).toEqual([
      ['{a}1', '{a}2', '{a}3'],
      ['{b}1', '{b}2'],
    ])
    expect(line.writes).toEqual([1, 2])
  })

  test('name a key once that several ask for, and each gets its own verdict', async () => {
    void occupy()
    const answers = [ask(charge('a', 'b')), ask(charge('a', 'b')), ask(charge('b'))]
    await turn()
    expect(line.calls[1]?.call.keys).toEqual(['a', 'b'])
    line.answer(1)
    expect((await Promise.all(answers)).map(({ length }) => length)).toEqual([2, 2, 1])
  })

  test('keep their mode, refunds one by one', async () => {
    void occupy()
    const refund = { key: 'a', policy, units: 1, atUs: 1, resetUs: 2 }
    const answers = [
      ask(charge('a')),
      ask({ mode: 'peek', parts: [check('b'), check('c')] }),
      ask({ mode: 'refund', parts: [refund, { ...refund, key: 'b' }] }),
    ]
    await turn()
    expect(runsOf(line.calls[1]?.call as Call).map(({ mode, count }) => [mode, count])).toEqual([
      [1, 1],
      [0, 2],
      [2, 1],
      [2, 1],
    ])
    line.answer(1)
    expect((await Promise.all(answers)).map(({ length }) => length)).toEqual([1, 2, 2])
  })

  test('wait while there is no connection, and go out together once there is', async () => {
    let connect = (): void => {}
    line.link = new Promise((resolve) => {
      connect = resolve
    })
    for (let i = 0; i < 5; i++) void ask(charge(`k${i}`))
    await turn()
    expect(line.calls).toEqual([])
    line.link = undefined
    connect()
    await turn()
    expect(line.sizes).toEqual([5])
  })

  test('all fail while there is no connection, and later ones are sent once there is', async () => {
    line.link = Promise.reject(new Error('away'))
    line.link.catch(() => {})
    const answers = await Promise.allSettled([ask(charge('a')), ask(charge('b'))])
    expect(answers.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    line.link = undefined
    void ask(charge('a'))
    expect(line.sizes).toEqual([1])
  })
})

describe('a deadline', () => {
  test('is each one’s own, at most a hundredth of its budget early', async () => {
    line.clock.heard(1e15)
    void occupy()
    const budgets = [10_000, 30_000, 60_000]
    for (const budget of budgets) void ask(charge('a'), budget)
    await turn()
    const runs = runsOf(line.calls[1]?.call as Call)
    for (const [i, budget] of budgets.entries()) {
      const leftMs = ((runs[i]?.notAfterUs ?? 0) - line.clock.nowUs()) / 1000
      expect(leftMs).toBeLessThanOrEqual(budget)
      expect(leftMs).toBeGreaterThan(0.99 * budget - 5000)
    }
  })

  test('that the server found passed costs one more call, and nobody else waits for it', async () => {
    const other = ask(charge('first'))
    const late = ask(charge('late'), 1000)
    const inTime = ask(charge('in time'))
    await turn()
    const [first] = runsOf(line.calls[1]?.call as Call)
    line.answer(1, (notAfterUs) => notAfterUs === first?.notAfterUs)
    expect(await inTime).toHaveLength(1)
    await turn()
    expect(line.calls.map(({ call }) => call.keys)).toEqual([['first'], ['late', 'in time'], ['late']])
    line.answer(2)
    line.answer(0)
    expect(await Promise.all([late, other])).toHaveLength(2)
  })

  test('that has passed before the call could be made sends nothing', async () => {
    await expect(ask(charge('a'), 0)).rejects.toMatchObject({ code: 'SLUICE_STORE_TIMEOUT' })
    expect(line.calls).toEqual([])
  })
})

describe('a call that fails', () => {
  async function callOfThree(): Promise<Promise<PromiseSettledResult<readonly Verdict[]>[]>[]> {
    void occupy()
    const answers = ['a', 'b', 'c'].map((key) => ask(charge(key)))
    await turn()
    return [Promise.allSettled(answers)]
  }

  test.each([
    'CROSSSLOT Keys in request don’t hash to the same slot',
    'TRYAGAIN Multiple keys request during rehashing of slot',
    'NOPERM this user has no permissions to access one of the keys used as arguments',
    'Too many Cluster redirections. Last error: ReplyError: TRYAGAIN',
    "OOM command not allowed when used memory > 'maxmemory'. script: f, on @user_script:1.",
    'ERR Error running script (call to f): @user_script:1: @user_script: 1: -OOM command not allowed',
    'MISCONF Redis is configured to save RDB snapshots',
    'NOREPLICAS Not enough good replicas to write.',
  ])('with nothing charged is asked again one by one: %s', async (message) => {
    const [settled] = await callOfThree()
    line.fail(1, message)
    await turn()
    expect(line.calls.slice(2).map(({ call }) => call.keys)).toEqual([['a'], ['b'], ['c']])
    line.answer(2)
    line.fail(3, message)
    line.answer(4)
    expect((await settled)?.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    await turn()
    expect(line.calls).toHaveLength(5)
  })

  test.each([
    'Connection is closed.',
    'READONLY You can’t write against a read only replica.',
    'ERR The user executing the script can’t run this command or subcommand script: f, on @user_script:1.',
    'BUSY Redis is busy running a script.',
  ])(
    'and may have charged, or would fail alone too, fails for all, and is not sent again: %s',
    async (message) => {
      const [settled] = await callOfThree()
      line.fail(1, message)
      expect((await settled)?.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
      await turn()
      expect(line.calls).toHaveLength(2)
    },
  )

  test('by a reply that is cut short fails for all', async () => {
    const [settled] = await callOfThree()
    line.calls[1]?.resolve(new Uint8Array(30))
    expect((await settled)?.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  })
})
