import { badOption } from './errors.js'

/** Checks an option that is a whole number from `least` to `most`; `kind` says of what. */
export function checkWhole(
  option: string,
  value: unknown,
  least: number,
  most: number,
  kind = 'a whole number',
): number {
  if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most)
    return value as number
  const [from, to] = [least, most].map((number) => number.toLocaleString('en'))
  throw badOption(option, value, `${kind} from ${from} to ${to}`)
}
