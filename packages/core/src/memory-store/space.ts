import type { ResolvedPolicy } from '../policy.js'
import type { Check } from '../store.js'

/**
 * How many keys a map is meant to hold: a little less than the 4096 up to which it grows, so that it is well filled,
 * and small enough that growing and tidying up is no pause that a request could notice.
 */
const keysPerMap = 3800

/** A key in two parts: whose it is, and the end that the keys of one limiter and policy have in common. */
export type Parts = Required<Pick<Check, 'owner' | 'tail'>>

/** The parts of a key: as its check tells them, or as a limiter would have made them. */
export function partsOf({ key, owner, tail }: Pick<Check, 'key' | 'owner' | 'tail'>): Parts {
  if (owner !== undefined && tail !== undefined) return { owner, tail }
  const end = key.startsWith('1:{') ? key.indexOf('}', 3) : -1
  return end < 0 ? { owner: key, tail: '' } : { owner: key.slice(3, end), tail: key.slice(end) }
}

/** The slots of all keys with one end, by owner, spread over many small maps. */
export class Space {
  readonly tail: string
  /** The numbers of those who hold a slot here: see `Tenants`. */
  readonly tenants = new Map<ResolvedPolicy, number>()
  readonly #maps: (Map<string, number> | undefined)[]
  #size = 0

  constructor(tail: string, maxKeys: number) {
    this.tail = tail
    this.#maps = new Array(Math.ceil(maxKeys / keysPerMap)).fill(undefined)
  }

  get size(): number {
    return this.#size
  }

  get(owner: string): number | undefined {
    return this.#maps[this.#mapOf(owner)]?.get(owner)
  }

  add(owner: string, slot: number): void {
    const i = this.#mapOf(owner)
    const map = this.#maps[i] ?? new Map<string, number>()
    this.#maps[i] = map.set(owner, slot)
    this.#size++
  }

  delete(owner: string): void {
    this.#maps[this.#mapOf(owner)]?.delete(owner)
    this.#size--
  }

  /**
   * By four of its characters, since reading one costs as much as all else here. Keys that differ in others only, or
   * aim at one map, make it larger and nothing else.
   */
  #mapOf(owner: string): number {
    if (this.#maps.length === 1) return 0
    const { length } = owner
    let hash = length
    hash = mix(hash, owner.charCodeAt(length - 1))
    hash = mix(hash, owner.charCodeAt(length - 2))
    hash = mix(hash, owner.charCodeAt(length >> 1))
    hash = mix(hash, owner.charCodeAt(length >> 2))
    return (hash >>> 0) % this.#maps.length
  }
}

function mix(hash: number, code: number): number {
  return Math.imul(hash ^ code, 0x01000193)
}
