import { runWorker } from '../children.mjs'
import { contestants, kindOf } from '../contestants/memory.mjs'
import { inRounds } from '../rounds.mjs'

/** Decisions a second, heap for a key and longest pause, in memory. */
export function measureMemoryStore({ quick }, onProgress) {
  const task = quick ? { keys: 100_000, decisions: 10_000 } : { keys: 1_000_000, decisions: 50_000 }
  const rows = Object.keys(contestants).map((name) => ({
    name,
    kind: kindOf(name),
    measure: () => runWorker('memory-store.mjs', { name, ...task }),
  }))
  return inRounds(rows, quick ? 1 : 3, onProgress)
}
