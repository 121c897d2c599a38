import type { Exchange, RequestContext } from './exchange.js'
import type { Misuse } from './misuse.js'

/** What functions of the request are told of it. */
export class Context implements RequestContext {
  plan: string | undefined = undefined
  readonly #exchange: Exchange
  readonly #misuse: Misuse

  constructor(exchange: Exchange, misuse: Misuse) {
    this.#exchange = exchange
    this.#misuse = misuse
  }

  get ip(): string | undefined {
    this.#misuse.address(this.#exchange)
    return this.#exchange.ip
  }

  // A function of its own, since it may be called without its context.
  get header(): RequestContext['header'] {
    return (name) => this.#exchange.header(name)
  }

  /** The context of the same request before its plan is known, which tells of who asks for that. */
  withoutPlan(onAsked: () => void): RequestContext {
    return Object.defineProperty(new Context(this.#exchange, this.#misuse), 'plan', { get: onAsked })
  }
}
