/**
 * Values of the contract on their way between Node.js and workerd, as JSON: what neither JSON nor the other side has
 * (functions, stores, limiters, requests, infinity) is named, and found by its name there.
 */
export interface Naming {
  /** What stands for a value that is to be named; undefined for one that can go as it is. */
  name?(value: object): object | undefined
  /** The value that something stands for; undefined for what names nothing. */
  find?(value: Readonly<Record<string, unknown>>): unknown
}

export function encode(value: unknown, naming: Naming): string {
  return JSON.stringify(plain(value, naming))
}

function plain(value: unknown, naming: Naming): unknown {
  if (value === undefined) return { $undefined: true }
  if (typeof value === 'number' && !Number.isFinite(value)) return { $number: String(value) }
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return value
  const named = naming.name?.(value)
  if (named) return plain(named, {})
  if (Array.isArray(value)) return value.map((item) => plain(item, naming))
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item, naming)]))
}

export function decode(text: string, naming: Naming): unknown {
  return revive(JSON.parse(text), naming)
}

function revive(value: unknown, naming: Naming): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => revive(item, naming))
  if ('$undefined' in value) return undefined
  if ('$number' in value) return Number(value.$number)
  const items = Object.fromEntries(Object.entries(value).map(([key, item]) => [key, revive(item, naming)]))
  return naming.find?.(items) ?? items
}
