/** A command of Redis and its arguments. */
export type Command = readonly (string | number)[]

/** As much of `fetch` as is used. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>

/** How long a call may take, and what it fails with after that. */
export interface Budget {
  readonly timeoutMs: number
  readonly late: () => Error
}

/** More commands of one turn go out in several requests, side by side. */
const mostPerRequest = 32

/**
 * Sends commands to a REST service for Redis. Those of one turn share a request, which no other turn waits for: a runtime
 * may tie a request to the one that it serves. Each keeps its own budget, and what it fails with.
 */
export class RestClient {
  readonly #url: string
  readonly #headers: Readonly<Record<string, string>>
  readonly #fetch: Fetch
  #waiting: Call[] = []

  /** @param url without a slash at its end */
  constructor(url: string, token: string, fetch: Fetch) {
    this.#url = url
    this.#headers = {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      // Replies are binary, which JSON cannot hold.
      'upstash-encoding': 'base64',
    }
    this.#fetch = fetch
  }

  /** The service's answer to a command, strings in base64; rejects with what Redis or the service says. */
  send(command: Command, budget: Budget): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.push(new Call(command, budget, resolve, reject)) === 1)
        queueMicrotask(() => this.#flush())
    })
  }

  #flush(): void {
    const calls = this.#waiting.splice(0)
    for (let i = 0; i < calls.length; i += mostPerRequest)
      void this.#request(calls.slice(i, i + mostPerRequest))
  }

  /** Sends calls in one request, which is given up once nobody waits for it any more. */
  async #request(calls: readonly Call[]): Promise<void> {
    const abort = new AbortController()
    let waiting = calls.length
    for (const call of calls) {
      call.begin(() => {
        waiting -= 1
        if (waiting === 0) abort.abort()
      })
    }
    const commands = calls.map(({ command }) => command)
    const fetch = this.#fetch
    try {
      const response = await fetch(commands.length === 1 ? this.#url : `${this.#url}/pipeline`, {
        method: 'POST',
        headers: this.#headers,
        body: JSON.stringify(commands.length === 1 ? commands[0] : commands),
        // What leads elsewhere is no service for Redis, and is not to see the token.
        redirect: 'manual',
        signal: abort.signal,
      })
      const answers = readAnswers(response.status, await response.text(), calls.length)
      for (const [i, call] of calls.entries()) call.answered(answers[i] as Answer)
    } catch (error) {
      for (const call of calls) call.answered({ error: reasonOf(error as Error) })
    }
  }
}

/** What Redis replied, or why it did not. */
type Answer = { readonly result: unknown } | { readonly error: Error }

class Call {
  readonly command: Command
  readonly #budget: Budget
  readonly #resolve: (result: unknown) => void
  readonly #reject: (error: Error) => void
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(
    command: Command,
    budget: Budget,
    resolve: (result: unknown) => void,
    reject: (error: Error) => void,
  ) {
    this.command = command
    this.#budget = budget
    this.#resolve = resolve
    this.#reject = reject
  }

  /** Starts its time, after which it fails. */
  begin(onLate: () => void): void {
    const giveUp = (): void => {
      this.#reject(this.#budget.late())
      onLate()
    }
    this.#timer = setTimeout(() => {
      // After a pause of the event loop timers run first, and an answer may be waiting in its socket.
      this.#timer = setTimeout(giveUp, 0)
    }, this.#budget.timeoutMs)
  }

  answered(answer: Answer): void {
    clearTimeout(this.#timer)
    if ('error' in answer) this.#reject(answer.error)
    else this.#resolve(answer.result)
  }
}

/** Reads `{ result }` or `{ error }`, of several commands an array of them. */
function readAnswers(status: number, text: string, count: number): Answer[] {
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    throw new Error(`HTTP ${status}`)
  }
  const answers: unknown[] = Array.isArray(body) ? body : [body]
  if (answers.length !== count || Array.isArray(body) !== count > 1)
    throw errorIn(body) ?? new Error(`HTTP ${status}`)
  return answers.map((answer): Answer => {
    const error = errorIn(answer)
    if (error) return { error }
    const { result } = (answer ?? {}) as { result?: unknown }
    return status === 200 && result !== undefined ? { result } : { error: new Error(`HTTP ${status}`) }
  })
}

function errorIn(answer: unknown): Error | undefined {
  const { error } = (answer ?? {}) as { error?: unknown }
  return typeof error === 'string' ? new Error(error) : undefined
}

/** Why a request failed: `fetch` of Node.js hides it behind "fetch failed". */
function reasonOf(error: Error): Error {
  const { message, code } = (error.cause ?? {}) as Partial<NodeJS.ErrnoException>
  const why = message || code
  return why ? new Error(why, { cause: error }) : error
}
