import { SluiceError, show } from './errors.js'
import { encodeName } from './key.js'
import { Layers } from './layers.js'
import type { Store } from './store.js'

interface NameHolder {
  /** The policies that the name stands for. */
  readonly identity: unknown
  readonly limiters: number
  /** What the limiters of the name share on a shared store. */
  readonly layers: Layers | undefined
}

/** The names taken on each store. */
const namesOf = new WeakMap<Store, Map<string, NameHolder>>()

/**
 * Takes a name on a store. Two limiters that share both would count each other's requests; only the same policies may.
 * @returns what the limiters of the name share, if the store is shared
 */
export function claimName(store: Store, name: string, identity: unknown): Layers | undefined {
  const names = namesOf.get(store) ?? new Map<string, NameHolder>()
  namesOf.set(store, names)
  const holder = names.get(name)
  if (holder && holder.identity !== identity) {
    throw new SluiceError(
      'SLUICE_DUPLICATE_NAME',
      `Option \`name\` is ${show(name)}, which another limiter on this store has. Expected a name of its own, or the same \`policies\` array or \`definePlans\` value to share its counts.`,
    )
  }
  const layers = holder?.layers ?? (store.shared ? new Layers(store, encodeName(name)) : undefined)
  names.set(name, { identity, layers, limiters: (holder?.limiters ?? 0) + 1 })
  return layers
}

/** Lets others have the name once all that share it are gone, when their leases go back. */
export async function freeName(store: Store, name: string): Promise<void> {
  const names = namesOf.get(store)
  const holder = names?.get(name)
  if (!names || !holder) return
  if (holder.limiters > 1) {
    names.set(name, { ...holder, limiters: holder.limiters - 1 })
    return
  }
  names.delete(name)
  await holder.layers?.close()
}
