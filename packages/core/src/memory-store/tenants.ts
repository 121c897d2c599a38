import type { ResolvedPolicy } from '../policy.js'
import type { Space } from './space.js'

/** Whose slot it is: that of a key of this space, which this policy charged last. */
export interface Tenant {
  readonly space: Space
  readonly policy: ResolvedPolicy
  slots: number
}

/** The tenants of all slots by number, since a number takes less than two references; 0 is nobody's. */
export class Tenants {
  readonly #tenants: (Tenant | undefined)[] = [undefined]
  readonly #free: number[] = []

  get(number: number): Tenant | undefined {
    return this.#tenants[number]
  }

  /** The number of a tenant, for one slot more. */
  enter(space: Space, policy: ResolvedPolicy): number {
    let number = space.tenants.get(policy)
    if (number === undefined) {
      number = this.#free.pop() ?? this.#tenants.length
      this.#tenants[number] = { space, policy, slots: 0 }
      space.tenants.set(policy, number)
    }
    ;(this.#tenants[number] as Tenant).slots++
    return number
  }

  leave(number: number): void {
    const tenant = this.#tenants[number] as Tenant
    if (--tenant.slots > 0) return
    this.#tenants[number] = undefined
    tenant.space.tenants.delete(tenant.policy)
    this.#free.push(number)
  }
}
