import { MemoryStore } from '../memory-store.js'
import type { Store } from '../store.js'

const localStores = new WeakMap<Store, MemoryStore>()

/** Where this process counts while a store is away: one memory for all limiters on that store. */
export function localStoreOf(store: Store): MemoryStore {
  let local = localStores.get(store)
  if (!local) {
    local = new MemoryStore()
    localStores.set(store, local)
  }
  return local
}
