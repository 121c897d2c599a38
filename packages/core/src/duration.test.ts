import { errorOf } from '../test/error-of.js'
import { formatDuration, parseDuration } from './duration.js'

describe('a duration', () => {
  it.each([
    [1, 1],
    [60_000, 60_000],
    [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
    ['250ms', 250],
    ['90s', 90_000],
    ['15m', 900_000],
    ['15 m', 900_000],
    ['1h', 3_600_000],
    ['2 hours', 7_200_000],
    ['1D', 86_400_000],
    ['1.5s', 1500],
    ['1.1h', 3_960_000],
    ['1.001s', 1001],
  ])('of %p is %p milliseconds', (value, milliseconds) => {
    expect(parseDuration('window', value)).toBe(milliseconds)
  })

  it.each([
    ['10', '"10"'],
    ['', '""'],
    ['abc', '"abc"'],
    ['5 fortnights', '"5 fortnights"'],
    ['-5m', '"-5m"'],
    ['0s', '"0s"'],
    ['0.0001s', '"0.0001s"'],
    ['1e3s', '"1e3s"'],
    ['Infinity', '"Infinity"'],
    [`${'1'.repeat(200)}s`, '…'],
    [0, '0'],
    [-1, '-1'],
    [0.5, '0.5'],
    [1e21, '1e+21'],
    [2 ** 53, '9007199254740992'],
    [Number.NaN, 'NaN'],
    [Number.POSITIVE_INFINITY, 'Infinity'],
    [10n, '10n'],
    [undefined, 'undefined'],
    [null, 'null'],
    [true, 'true'],
    [[60_000], 'an array of 1'],
    [{ minutes: 1 }, 'an object (minutes)'],
  ])('of %p is refused (B84, B146)', async (value, shown) => {
    const error = await errorOf(() => parseDuration('window', value))
    expect(error.code).toBe('SLUICE_BAD_DURATION')
    expect(error.message).toContain('`window`')
    expect(error.message).toContain(shown)
    expect(error.message).toContain("'15m'")
  })

  it.each([
    [1, '1ms'],
    [1500, '1500ms'],
    [1000, '1s'],
    [90_000, '90s'],
    [60_000, '1m'],
    [5_400_000, '90m'],
    [3_600_000, '1h'],
    [86_400_000, '1d'],
    [400 * 86_400_000, '400d'],
  ])('of %p ms is written %p, in the largest unit that divides it', (milliseconds, text) => {
    expect(formatDuration(milliseconds)).toBe(text)
    expect(parseDuration('window', text)).toBe(milliseconds)
  })
})
