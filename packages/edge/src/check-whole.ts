import { badOption } from '@sluice/core'

/** Checks an option that is a whole number from `least` to `most`. */
export function checkWhole(option: string, value: unknown, least: number, most: number): number {
  if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most)
    return value as number
  const [from, to] = [least, most].map((number) => number.toLocaleString('en'))
  throw badOption(option, value, `a whole number from ${from} to ${to}`)
}
