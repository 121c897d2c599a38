import { show } from '../errors.js'
import type { Limiter } from '../limiter.js'
import type { Exchange } from './exchange.js'

/** How many limiters of a name met a request in the very turn that made them. */
const madeForRequest = new Map<string, number>()

/** Names may be made of what clients send, of which there is no end. */
const maxNames = 1000

const forwardingFields = ['X-Forwarded-For', 'Forwarded'] as const

/** A proxy writes them into every request: the first requests tell, and then one of so many. */
const lookedAt = 100

/** Warns of likely mistakes in how a limiter is used, once of each. */
export class Misuse {
  readonly #limiter: Limiter
  #justMade: boolean
  #trustKnown = false
  #trustsNoProxy = false
  #addresses = 0

  /** @param made whether the limiter was made just now, with the middleware */
  constructor(limiter: Limiter, made: boolean) {
    this.#limiter = limiter
    this.#justMade = made
    // Requests come by way of the event loop: none meets, in the same turn, a limiter that was made at the start.
    if (made) void Promise.resolve().then(() => this.#settle())
  }

  /** To be told of each request as it comes. */
  request(): void {
    if (!this.#justMade) return
    this.#settle()
    const { name } = this.#limiter
    const made = (madeForRequest.get(name) ?? 0) + 1
    if (made > 2 || (made === 1 && madeForRequest.size >= maxNames)) return
    madeForRequest.set(name, made)
    // One alone may be made with the first request, and kept.
    if (made === 2) {
      this.#limiter.warn(
        'SLUICE_MADE_IN_HANDLER',
        `limiter ${show(name)} is made anew while requests are handled, and what it counts in memory is forgotten with it; make it once, outside of the handler`,
      )
    }
  }

  /** To be told of each request that is to be counted by its address. */
  address(exchange: Exchange): void {
    if (!this.#trustKnown) {
      this.#trustKnown = true
      this.#trustsNoProxy = exchange.trustsNoProxy
      if (exchange.trustsEveryProxy) {
        this.#limiter.warn(
          'SLUICE_TRUSTS_EVERY_PROXY',
          'the framework trusts every proxy, so a client is counted by any address that it writes into X-Forwarded-For; trust only the proxies in front of this server',
        )
      }
    }
    if (!this.#trustsNoProxy) return
    this.#addresses += 1
    if (this.#addresses > lookedAt && this.#addresses % lookedAt !== 0) return
    const field = forwardingFields.find((name) => exchange.header(name.toLowerCase()) !== undefined)
    if (!field) return
    this.#trustsNoProxy = false
    this.#limiter.warn(
      'SLUICE_UNTRUSTED_FORWARDED_HEADER',
      `a request came with ${field} while the framework trusts no proxy: if there is one, all of its clients are counted as one; tell the framework which proxies to trust (\`trust proxy\` of Express, \`proxy\` and \`maxIpsCount\` of Koa, \`trustProxy\` of Fastify, \`address\` of @sluice/edge)`,
    )
  }

  #settle(): void {
    this.#justMade = false
  }
}
