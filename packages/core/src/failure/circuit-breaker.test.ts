import { CircuitBreaker } from './circuit-breaker.js'

const cause = new Error('failed')

/** A breaker on a clock that the test moves. */
function breakerAt(): {
  at: (nowMs: number) => void
  call: (fails: boolean, tookMs?: number, budgetMs?: number) => boolean
  calls: (count: number, fails: boolean) => void
  breaker: CircuitBreaker
  changes: (Error | undefined)[]
} {
  let nowMs = 1_000_000
  const changes: (Error | undefined)[] = []
  const breaker = new CircuitBreaker(
    () => nowMs,
    (change) => changes.push(change),
  )
  const call = (fails: boolean, tookMs = 1, budgetMs = 100): boolean => {
    const startedMs = breaker.enter(budgetMs)
    if (startedMs === undefined) return false
    nowMs += tookMs
    if (fails) breaker.failed(startedMs, budgetMs, cause)
    else breaker.succeeded(startedMs)
    return true
  }
  return {
    at: (atMs) => {
      nowMs = 1_000_000 + atMs
    },
    call,
    calls: (count, fails) => {
      for (let i = 0; i < count; i++) call(fails)
    },
    breaker,
    changes,
  }
}

describe('a circuit breaker opens', () => {
  it.each<[string, [number, boolean][], boolean]>([
    ['not at two failures', [[2, true]], false],
    ['at three failures', [[3, true]], true],
    [
      'not at three of seven',
      [
        [4, false],
        [3, true],
      ],
      false,
    ],
    [
      'at half of the calls',
      [
        [4, false],
        [4, true],
      ],
      true,
    ],
    [
      'not below half of the last hundred',
      [
        [1000, false],
        [49, true],
      ],
      false,
    ],
    [
      'at half of the last hundred',
      [
        [1000, false],
        [50, true],
      ],
      true,
    ],
  ])('%s', (_, runs, opens) => {
    const { calls, breaker, changes } = breakerAt()
    for (const [count, fails] of runs) calls(count, fails)
    expect(breaker.cause).toBe(opens ? cause : undefined)
    expect(changes).toEqual(opens ? [cause] : [])
  })

  it('by the calls of the last ten seconds, but never by fewer than five', () => {
    const { at, calls, call, breaker } = breakerAt()
    calls(100, false)
    at(20_000)
    calls(2, true)
    expect(breaker.cause).toBeUndefined()
    call(true)
    expect(breaker.cause).toBe(cause)
  })

  it('however rare the calls are', () => {
    const { at, calls, call, breaker } = breakerAt()
    calls(100, false)
    for (const minute of [1, 2, 3]) {
      at(minute * 60_000)
      call(true)
    }
    expect(breaker.cause).toBe(cause)
  })

  it('not for failures during which others were answered', () => {
    const { at, breaker } = breakerAt()
    const started = Array.from({ length: 50 }, () => breaker.enter(100) as number)
    at(50)
    breaker.succeeded(breaker.enter(100) as number)
    at(100)
    for (const startedMs of started) breaker.failed(startedMs, 100, cause)
    expect(breaker.cause).toBeUndefined()
  })
})

describe('an open circuit breaker', () => {
  function opened(): ReturnType<typeof breakerAt> {
    const made = breakerAt()
    made.calls(3, true)
    made.at(0)
    return made
  }

  it('lets one call through at 100, 300 and 700 ms, and then each 500 ms', () => {
    const made = breakerAt()
    for (let i = 0; i < 3; i++) made.call(true, 0)
    const probesMs: number[] = []
    for (let atMs = 0; atMs <= 2000; atMs += 10) {
      made.at(atMs)
      if (made.call(true, 0)) probesMs.push(atMs)
      expect(made.call(true, 0)).toBe(false)
    }
    expect(probesMs).toEqual([100, 300, 700, 1200, 1700])
    expect(made.changes).toEqual([cause])
  })

  it('probes again though an earlier probe is still out', () => {
    const { at, breaker } = opened()
    at(200)
    expect(breaker.enter(100)).toBeDefined()
    expect(breaker.enter(100)).toBeUndefined()
    at(500)
    expect(breaker.enter(100)).toBeDefined()
  })

  it('lets calls with longer budgets through between probes, once each, and beside each probe again', () => {
    const { at, call } = breakerAt()
    for (let i = 0; i < 3; i++) call(true, 0, 5)
    const entered = (): number[] => [5, 100, 5, 50, 100, 2000, 2000].filter((ms) => call(true, 0, ms))
    at(50)
    expect(entered()).toEqual([100, 2000])
    expect(entered()).toEqual([])
    at(100)
    expect(entered()).toEqual([5, 100, 2000])
    expect(entered()).toEqual([])
  })

  it('is closed by a call with a longer budget, though those with a short one keep taking the probes', () => {
    const { at, call, breaker } = breakerAt()
    for (let i = 0; i < 3; i++) call(true, 1, 2000)
    for (let atMs = 10; atMs <= 5000; atMs += 10) {
      at(atMs)
      call(true, 0, 5)
    }
    expect(breaker.cause).toBe(cause)
    expect(call(false, 1, 2000)).toBe(true)
    expect(breaker.cause).toBeUndefined()
  })

  it('closes with the first probe that succeeds, and starts afresh', () => {
    const { at, calls, call, breaker, changes } = opened()
    at(200)
    call(false)
    expect(changes).toEqual([cause, undefined])
    calls(2, true)
    expect(breaker.cause).toBeUndefined()
    calls(1, true)
    expect(changes).toEqual([cause, undefined, cause])
  })

  it('is not closed by a call that began before it opened', () => {
    const { at, calls, breaker } = breakerAt()
    const early = breaker.enter(100) as number
    calls(3, true)
    at(50)
    breaker.succeeded(early)
    expect(breaker.cause).toBe(cause)
  })

  it('is closed by a probe that took long', () => {
    const { at, breaker } = opened()
    at(200)
    const startedMs = breaker.enter(100) as number
    at(30_000)
    breaker.succeeded(startedMs)
    expect(breaker.cause).toBeUndefined()
  })
})
