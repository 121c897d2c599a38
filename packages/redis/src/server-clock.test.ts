import { ServerClock } from './server-clock.js'

describe('the clock of a server', () => {
  let localMs: number
  beforeEach(() => {
    localMs = 1000
    jest.spyOn(performance, 'now').mockImplementation(() => localMs)
  })
  afterEach(() => jest.restoreAllMocks())

  const serverUs = 1_800_000_000_000_000

  function heardOf(): ServerClock {
    const clock = new ServerClock()
    clock.heard(serverUs)
    return clock
  }

  test('is long past while nothing was heard, so that a first call is too late', () => {
    const clock = new ServerClock()
    localMs += 3_600_000
    expect(clock.nowUs()).toBeLessThan(serverUs / 2)
  })

  test('runs on by the local clock', () => {
    const clock = heardOf()
    localMs += 1.5
    expect(clock.nowUs()).toBe(serverUs + 1500)
  })

  test.each([
    ['one that is ahead', 100, 200_000, 200_000],
    ['one that was read late, which tells less', 100, 40_000, 100_000],
    ['one that is behind by more than any delay: it was set back', 100, -5_000_000, -5_000_000],
    ['one after so long that the clocks may have drifted', 10_001, 10_000_000, 10_000_000],
  ])('takes of replies %s', (_, laterMs, toldUs, nowUs) => {
    const clock = heardOf()
    localMs += laterMs
    clock.heard(serverUs + toldUs)
    expect(clock.nowUs()).toBe(serverUs + nowUs)
  })

  test('that is forgotten is unknown again', () => {
    const clock = heardOf()
    clock.forget()
    expect(clock.nowUs()).toBe(0)
    clock.heard(serverUs - 1_000_000)
    expect(clock.nowUs()).toBe(serverUs - 1_000_000)
  })
})
