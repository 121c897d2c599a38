import { Departures } from './departures.js'

/** Departures on a clock and timers that the test moves together. */
function setUp() {
  jest.useFakeTimers({ now: 0, doNotFake: ['performance'] })
  const departures = new Departures(() => Date.now())
  const gone: string[] = []
  const wait = (name: string, delayMs: number) => {
    const { departed, left } = departures.wait(delayMs)
    void departed.then((went) => gone.push(went ? name : `${name} left`))
    return left
  }
  return { departures, gone, wait, advance: (ms: number) => jest.advanceTimersByTimeAsync(ms) }
}

afterEach(() => {
  jest.useRealTimers()
})

describe('departures', () => {
  it('lets each request go at its time, in the order of times, the earlier comer first at the same', async () => {
    const { gone, wait, advance } = setUp()
    wait('c', 30)
    wait('a', 10)
    wait('b1', 20)
    wait('b2', 20)
    await advance(9)
    expect(gone).toEqual([])
    await advance(1)
    expect(gone).toEqual(['a'])
    await advance(20)
    expect(gone).toEqual(['a', 'b1', 'b2', 'c'])
  })

  it('waits on when a timer fires before its time', async () => {
    jest.useFakeTimers({ now: 0, doNotFake: ['performance'] })
    let nowMs = 0
    let went = false
    void new Departures(() => nowMs).wait(10).departed.then(() => {
      went = true
    })
    nowMs = 9.4
    await jest.advanceTimersByTimeAsync(10)
    expect(went).toBe(false)
    nowMs = 10
    await jest.advanceTimersByTimeAsync(1)
    expect(went).toBe(true)
  })

  it('lets a request go though the timer of an earlier one was lost', async () => {
    const { gone, wait, advance } = setUp()
    jest.spyOn(globalThis, 'setTimeout').mockImplementationOnce(() => 0 as never)
    wait('a', 10)
    wait('b', 20)
    await advance(20)
    expect(gone).toEqual(['a', 'b'])
  })

  it('lets those who leave go without a departure, and keeps the others in order', async () => {
    const { gone, wait, advance } = setUp()
    const first = wait('a', 10)
    wait('b', 20)
    const last = wait('c', 30)
    first()
    last()
    first()
    await advance(40)
    expect(gone).toEqual(['a left', 'c left', 'b'])
  })

  it('does not overflow the timer for a wait of a year', async () => {
    const { gone, wait, advance } = setUp()
    wait('a', 365 * 86_400_000)
    await advance(364 * 86_400_000)
    expect(gone).toEqual([])
    await advance(86_400_000)
    expect(gone).toEqual(['a'])
  })

  it('keeps no timer when nobody waits', async () => {
    const { wait, advance } = setUp()
    wait('a', 10)()
    wait('b', 10)
    await advance(10)
    expect(jest.getTimerCount()).toBe(0)
  })
})
