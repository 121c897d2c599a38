import { within } from './within.js'

const late = () => new Error('late')

describe('a promise with a deadline', () => {
  beforeEach(() => {
    jest.useFakeTimers()
  })
  afterEach(() => {
    jest.useRealTimers()
  })

  it('resolves as the promise does, and leaves no timer', async () => {
    await expect(within(Promise.resolve(1), 100, late)).resolves.toBe(1)
    await Promise.resolve()
    expect(jest.getTimerCount()).toBe(0)
  })

  it('rejects as the promise does, and leaves no timer', async () => {
    await expect(within(Promise.reject(new Error('failed')), 100, late)).rejects.toThrow('failed')
    await Promise.resolve()
    expect(jest.getTimerCount()).toBe(0)
  })

  it.each<[string, unknown]>([
    ['a value', 1],
    // biome-ignore lint/suspicious/noThenProperty: it is what the test is about
    ['what has only a `then`', { then: (resolve: (value: number) => void) => resolve(1) }],
  ])('takes %s for a promise, and leaves no timer', async (_, value) => {
    await expect(within(value, 100, late)).resolves.toBe(1)
    await Promise.resolve()
    expect(jest.getTimerCount()).toBe(0)
  })

  it('rejects after the time given, one turn later, when the promise has not settled', async () => {
    const settled = jest.fn()
    const result = within(new Promise<never>(() => {}), 100, late)
    result.catch(settled)
    await jest.advanceTimersByTimeAsync(99)
    expect(settled).not.toHaveBeenCalled()
    await jest.advanceTimersByTimeAsync(2)
    expect(settled).toHaveBeenCalledWith(late())
    expect(jest.getTimerCount()).toBe(0)
  })

  it('swallows what the promise does too late', async () => {
    let fail: (error: Error) => void = () => {}
    const result = within(
      new Promise<never>((_, reject) => {
        fail = reject
      }),
      100,
      late,
    )
    const outcome = expect(result).rejects.toThrow('late')
    await jest.advanceTimersByTimeAsync(102)
    fail(new Error('failed after all'))
    await outcome
  })
})
