import type { Numbers } from '../algorithms/algorithm.js'

/** How many slots a page holds: small stores take little, and large ones grow without copying what they have. */
const pageBits = 10
const pageSize = 1 << pageBits
/** The numbers of a slot, in doubles: those of a state, and one for the two whole numbers after it. */
const stride = 4

/** What some slots hold: the owner of the key, and 32 bytes that lie together, so that to decide reads one cache line. */
export class Page implements Numbers {
  readonly wide = new Float64Array(stride * pageSize)
  readonly narrow = new Uint32Array(this.wide.buffer)
  readonly owners = new Array<string>(pageSize)
  /** The states that are no few numbers. */
  states: unknown[] | undefined
  /** The slot at each of as many places. */
  readonly order = new Uint32Array(pageSize)
}

/** The index in its page of a slot, or of a place. */
export const inPage = (slot: number): number => slot & (pageSize - 1)
/** Where the state of a slot is, see `Packing`. */
export const stateAt = (slot: number): number => stride * inPage(slot)
/** Where in `narrow` the place of a slot is. */
export const placeAt = (slot: number): number => 2 * stateAt(slot) + 6
/** Where in `narrow` the number of a slot's tenant is. */
export const tenantAt = (slot: number): number => 2 * stateAt(slot) + 7

/** Pages, as they are needed. */
export class Pages {
  readonly #pages: Page[] = []

  /** The page of a slot; a new one where the slot is the one after the last. */
  of(slot: number): Page {
    const i = slot >>> pageBits
    if (i === this.#pages.length) this.#pages.push(new Page())
    return this.#pages[i] as Page
  }
}

/** Room for the states of a page that are no few numbers. */
export function statesOf(page: Page): unknown[] {
  page.states ??= new Array<unknown>(pageSize)
  return page.states
}
