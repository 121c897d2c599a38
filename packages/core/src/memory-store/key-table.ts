import type { ResolvedPolicy } from '../policy.js'
import type { Check } from '../store.js'
import { inPage, type Page, Pages, stateAt, statesOf, tenantAt } from './pages.js'
import { Ranking } from './ranking.js'
import { partsOf, Space } from './space.js'
import { type Tenant, Tenants } from './tenants.js'

/** The slot of a key that is not held. */
export const none = -1

/** Keys are ranked by the quarters of their limit that they have used: exhausted ones first, slots without key last. */
const little = 4
const free = 5

/** The keys that a store in memory holds, each in a slot of its own, with the policy that charged it last and its state. */
export class KeyTable {
  readonly #maxKeys: number
  readonly #spaces = new Map<string, Space>()
  readonly #pages = new Pages()
  readonly #tenants = new Tenants()
  readonly #ranking = new Ranking(free + 1, this.#pages)

  constructor(maxKeys: number) {
    this.#maxKeys = maxKeys
  }

  /** How many keys are held. */
  get size(): number {
    return this.#ranking.before(free)
  }

  find(key: Pick<Check, 'key' | 'owner' | 'tail'>): number {
    const { owner, tail } = partsOf(key)
    return this.#spaces.get(tail)?.get(owner) ?? none
  }

  policyOf(slot: number): ResolvedPolicy {
    return this.#tenantOf(this.#pages.of(slot), slot).policy
  }

  /** The state of a key, for a policy of the algorithm that it is of; for another there is none. */
  stateOf(slot: number, policy: ResolvedPolicy): unknown {
    const page = this.#pages.of(slot)
    const holder = this.#tenantOf(page, slot).policy
    if (holder !== policy && holder.step !== policy.step) return undefined
    return policy.packing ? policy.packing.unpack(page, stateAt(slot)) : page.states?.[inPage(slot)]
  }

  /** Gives a key that is not held a slot, to be written next. */
  add(check: Check): number {
    const { owner, tail } = partsOf(check)
    let space = this.#spaces.get(tail)
    if (!space) {
      space = new Space(tail, this.#maxKeys)
      this.#spaces.set(tail, space)
    }
    const slot = this.#ranking.count(free) > 0 ? this.#ranking.at(free, 0) : this.#ranking.add()
    this.#ranking.move(slot, little)
    const page = this.#pages.of(slot)
    const kept = copyOf(owner)
    page.owners[inPage(slot)] = kept
    page.narrow[tenantAt(slot)] = this.#tenants.enter(space, check.policy)
    space.add(kept, slot)
    return slot
  }

  /** @param usedShare of the policy's limit, 0 to 1 */
  write(slot: number, policy: ResolvedPolicy, state: unknown, usedShare: number): void {
    const page = this.#pages.of(slot)
    const tenant = this.#tenantOf(page, slot)
    if (tenant.policy !== policy) {
      const before = page.narrow[tenantAt(slot)] as number
      page.narrow[tenantAt(slot)] = this.#tenants.enter(tenant.space, policy)
      this.#tenants.leave(before)
    }
    if (policy.packing) policy.packing.pack(state, page, stateAt(slot))
    else statesOf(page)[inPage(slot)] = state
    this.#ranking.move(slot, little - Math.floor(usedShare * little))
  }

  remove(slot: number): void {
    const page = this.#pages.of(slot)
    const { space } = this.#tenantOf(page, slot)
    space.delete(page.owners[inPage(slot)] as string)
    if (space.size === 0) this.#spaces.delete(space.tail)
    this.#tenants.leave(page.narrow[tenantAt(slot)] as number)
    page.narrow[tenantAt(slot)] = 0
    page.owners[inPage(slot)] = ''
    if (page.states) page.states[inPage(slot)] = undefined
    this.#ranking.move(slot, free)
  }

  /** Some keys of each rank, those least used first. */
  sample(ofEach: number): number[] {
    const slots: number[] = []
    for (let rank = little; rank >= 0; rank--) {
      const count = this.#ranking.count(rank)
      const start = Math.floor(Math.random() * count)
      const stride = Math.max(1, Math.floor(count / ofEach))
      for (let i = 0; i < Math.min(ofEach, count); i++) {
        slots.push(this.#ranking.at(rank, (start + i * stride) % count))
      }
    }
    return slots
  }

  #tenantOf(page: Page, slot: number): Tenant {
    return this.#tenants.get(page.narrow[tenantAt(slot)] as number) as Tenant
  }
}

/** The same text in a string of its own: one cut from a header would keep all of it in memory. */
function copyOf(text: string): string {
  return text.split('').join('')
}
