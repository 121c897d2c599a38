import { tell, watch } from './response.js'

/** A request on its way in through its limiters, and its response on the way out. */
export class Visit {
  /** What the handler made of the request; where it failed, what runtimes answer then. */
  response: Response | undefined
  readonly #request: Request
  /** How many limiters it is inside of. */
  #depth = 0
  #watched = false
  #listener: ((finished: boolean) => void) | undefined

  constructor(request: Request) {
    this.#request = request
  }

  /** Whether the client has left. */
  get gone(): boolean {
    return this.#request.signal.aborted
  }

  /** Calls the listener once, when the response was read in full, or the client left before (false). */
  onEnd(listener: (finished: boolean) => void): void {
    this.#listener = listener
    if (this.gone) this.#end(false)
    else this.#request.signal.addEventListener('abort', () => this.#end(false), { once: true })
  }

  /**
   * Lets one limiter answer. The outermost is the last to have the response, which is then told of the limits.
   * @param watched whether the end of the response matters to the limiter
   */
  async pass<T extends Response | undefined>(watched: boolean, answer: () => Promise<T>): Promise<T> {
    this.#watched ||= watched
    this.#depth += 1
    let response: T
    try {
      response = await answer()
    } catch (error) {
      this.#depth -= 1
      if (this.#depth === 0) {
        this.response = new Response(null, { status: 500 })
        this.#end(true)
      }
      throw error
    }
    this.#depth -= 1
    // Bun is given no response for a request that became a WebSocket.
    return this.#depth === 0 && response ? (this.#send(response) as T) : response
  }

  #send(response: Response): Response {
    this.response = tell(this.#request, response)
    // Only a body whose end matters is touched.
    if (!this.#watched || !this.#listener) return this.response
    return watch(this.response, (finished) => this.#end(finished))
  }

  #end(finished: boolean): void {
    const listener = this.#listener
    this.#listener = undefined
    listener?.(finished)
  }
}

const visits = new WeakMap<Request, Visit>()

/** The one visit of a request, however many limiters it meets. */
export function visitOf(request: Request): Visit {
  let visit = visits.get(request)
  if (!visit) {
    visit = new Visit(request)
    visits.set(request, visit)
  }
  return visit
}
