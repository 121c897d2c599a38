import { SluiceError, show } from './errors.js'
import type { Store } from './store.js'

interface NameHolder {
  /** The policies that the name stands for. */
  readonly identity: unknown
  readonly limiters: number
}

/** The names taken on each store. */
const namesOf = new WeakMap<Store, Map<string, NameHolder>>()

/** Two limiters that share a store and a name would count each other's requests; only the same policies may. */
export function claimName(store: Store, name: string, identity: unknown): void {
  const names = namesOf.get(store) ?? new Map<string, NameHolder>()
  namesOf.set(store, names)
  const holder = names.get(name)
  if (holder && holder.identity !== identity) {
    throw new SluiceError(
      'SLUICE_DUPLICATE_NAME',
      `Option \`name\` is ${show(name)}, which another limiter on this store has. Expected a name of its own, or the same \`policies\` array or \`definePlans\` value to share its counts.`,
    )
  }
  names.set(name, { identity, limiters: (holder?.limiters ?? 0) + 1 })
}

/** Lets others have the name once all that share it are gone. */
export function freeName(store: Store, name: string): void {
  const names = namesOf.get(store)
  const holder = names?.get(name)
  if (!names || !holder) return
  if (holder.limiters > 1) names.set(name, { ...holder, limiters: holder.limiters - 1 })
  else names.delete(name)
}
