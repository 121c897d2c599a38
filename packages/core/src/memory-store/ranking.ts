import { inPage, type Pages, placeAt } from './pages.js'

/**
 * All slots in one order by rank, so that those of one rank are a stretch of it. A slot goes to the rank beside its
 * own by changing places with the one at the border.
 */
export class Ranking {
  readonly #pages: Pages
  /** For each rank, the place after its last. */
  readonly #ends: number[]

  constructor(ranks: number, pages: Pages) {
    this.#pages = pages
    this.#ends = new Array<number>(ranks).fill(0)
  }

  /** How many slots are of the ranks before this one. */
  before(rank: number): number {
    return rank === 0 ? 0 : (this.#ends[rank - 1] as number)
  }

  /** How many slots have this rank. */
  count(rank: number): number {
    return (this.#ends[rank] as number) - this.before(rank)
  }

  /** The slot that is number `i` of a rank. */
  at(rank: number, i: number): number {
    return this.#slotAt(this.before(rank) + i)
  }

  /** Makes a slot, of the last rank; slots are numbered from 0 on. */
  add(): number {
    const last = this.#ends.length - 1
    const slot = this.#ends[last] as number
    this.#ends[last] = slot + 1
    this.#put(slot, slot)
    return slot
  }

  move(slot: number, rank: number): void {
    const ends = this.#ends
    const place = this.#placeOf(slot)
    // Most charges leave it where it is.
    let from = rank
    while (place < this.before(from)) from--
    while (place >= (ends[from] as number)) from++
    for (; from > rank; from--) this.#swap(slot, (ends[from - 1] as number)++)
    for (; from < rank; from++) this.#swap(slot, --(ends[from] as number))
  }

  #swap(slot: number, place: number): void {
    this.#put(this.#slotAt(place), this.#placeOf(slot))
    this.#put(slot, place)
  }

  #put(slot: number, place: number): void {
    this.#pages.of(slot).narrow[placeAt(slot)] = place
    this.#pages.of(place).order[inPage(place)] = slot
  }

  #placeOf(slot: number): number {
    return this.#pages.of(slot).narrow[placeAt(slot)] as number
  }

  #slotAt(place: number): number {
    return this.#pages.of(place).order[inPage(place)] as number
  }
}
