import ms from 'ms'
import { SluiceError, show } from './errors.js'

/**
 * A length of time: whole milliseconds as a number, or text with a unit: `'90s'`, `'15m'`, `'1h'`, `'1d'`.
 * A bare `'10'` is refused, since nobody can tell whether it means seconds.
 */
export type Duration = number | string

const withUnit = /^\d+(\.\d+)?\s*[a-z]+$/i

/**
 * Reads a {@link Duration} as whole milliseconds.
 * @throws SluiceError `SLUICE_BAD_DURATION` when it is not a whole number of milliseconds from 1 up.
 */
export function parseDuration(option: string, value: unknown): number {
  const milliseconds =
    typeof value === 'string' && withUnit.test(value)
      ? fromText(value)
      : typeof value === 'number'
        ? value
        : Number.NaN
  if (!Number.isSafeInteger(milliseconds) || milliseconds < 1) {
    throw new SluiceError(
      'SLUICE_BAD_DURATION',
      `Option \`${option}\` is ${show(value)}. Expected whole milliseconds of at least 1 as a number, or text with a unit such as '90s', '15m', '1h' or '1d'.`,
      { path: [option] },
    )
  }
  return milliseconds
}

/** Rounded to the microsecond: 1.1 hours in doubles is a little more than 3,960,000 ms. */
function fromText(text: string): number {
  return Math.round(ms(text as ms.StringValue) * 1000) / 1000
}

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
] as const

/** Writes milliseconds in the largest of d, h, m, s, ms that divides them: 90000 is `90s`, 60000 is `1m`. */
export function formatDuration(milliseconds: number): string {
  for (const [unit, length] of units) {
    if (milliseconds % length === 0) return `${milliseconds / length}${unit}`
  }
  return `${milliseconds}ms`
}
