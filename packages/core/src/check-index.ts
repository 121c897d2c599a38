import type { ResolvedPolicy } from './policy.js'
import type { Check } from './store.js'

interface Entry<T> {
  readonly checks: readonly Check[]
  readonly value: T
}

/** Values by the checks of a decision: found by the same keys and policies, numbers included, or by any of the keys. */
export class CheckIndex<T> {
  /** The entries of each key. */
  readonly #byKey = new Map<string, Entry<T>[]>()
  #size = 0

  get size(): number {
    return this.#size
  }

  find(checks: readonly Check[]): T | undefined {
    const entries = this.#byKey.get((checks[0] as Check).key)
    if (entries) for (const entry of entries) if (isSame(entry.checks, checks)) return entry.value
    return undefined
  }

  /** Adds a value for checks that have none. */
  add(checks: readonly Check[], value: T): void {
    const entry = { checks, value }
    for (const key of keysOf(checks)) {
      const entries = this.#byKey.get(key)
      if (entries) entries.push(entry)
      else this.#byKey.set(key, [entry])
    }
    this.#size += 1
  }

  /** Takes out all values that concern any of these keys. */
  take(keys: readonly string[]): T[] {
    const found = new Set<Entry<T>>()
    for (const key of keys) for (const entry of this.#byKey.get(key) ?? []) found.add(entry)
    for (const entry of found) this.#remove(entry)
    return [...found].map(({ value }) => value)
  }

  /** Takes out all values that do not pass. */
  keep(passes: (value: T) => boolean): void {
    for (const entry of this.#entries()) if (!passes(entry.value)) this.#remove(entry)
  }

  /** All values. */
  values(): T[] {
    return [...this.#entries()].map(({ value }) => value)
  }

  /** Each entry once: under the first of its keys. */
  *#entries(): Generator<Entry<T>> {
    for (const [key, entries] of this.#byKey) {
      for (const entry of [...entries]) if (entry.checks[0]?.key === key) yield entry
    }
  }

  #remove(entry: Entry<T>): void {
    for (const key of keysOf(entry.checks)) {
      const entries = this.#byKey.get(key) as Entry<T>[]
      if (entries.length === 1) this.#byKey.delete(key)
      else entries.splice(entries.indexOf(entry), 1)
    }
    this.#size -= 1
  }
}

function keysOf(checks: readonly Check[]): readonly string[] {
  return checks.length === 1 ? [(checks[0] as Check).key] : [...new Set(checks.map(({ key }) => key))]
}

function isSame(a: readonly Check[], b: readonly Check[]): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) {
    const [one, other] = [a[i] as Check, b[i] as Check]
    if (one.key !== other.key) return false
    if (one.policy !== other.policy && !hasSameNumbers(one.policy, other.policy)) return false
  }
  return true
}

function hasSameNumbers({ wire: a }: ResolvedPolicy, { wire: b }: ResolvedPolicy): boolean {
  return a.length === b.length && a.every((number, i) => number === b[i])
}
