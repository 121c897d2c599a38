import http from 'node:http'
import type { Check, ConsumeOptions, Refund, Store, Verdict } from '@sluice/core'
import { encodeCall, type Question } from '../src/cloudflare/wire.js'

/** Sends text and resolves to what came back as JSON; what failed is thrown. */
export type Ask = (path: string, headers: http.OutgoingHttpHeaders, body: string) => Promise<unknown>

/** Few connections at once, each for one call: a kept one may be closed just as the next call sets out. */
export function askOver(url: URL): { ask: Ask; close(): void } {
  const agent = new http.Agent({ maxSockets: 32 })
  const ask: Ask = (path, headers, body) =>
    new Promise((resolve, reject) => {
      const request = http.request(
        new URL(path, url),
        { method: 'POST', agent, headers },
        async (response) => {
          let text = ''
          for await (const chunk of response.setEncoding('utf8')) text += chunk
          if (response.statusCode === 200) resolve(JSON.parse(text))
          else reject(text.startsWith('{') ? Object.assign(new Error(), JSON.parse(text)) : new Error(text))
        },
      )
      request.on('error', reject).end(body)
    })
  return { ask, close: () => agent.destroy() }
}

/** What a Worker made of a call. */
type Outcome = { readonly value: unknown } | { readonly code: string; readonly message: string }

/** A store of a Worker, asked from Node.js: all calls of a turn in one request, which the Worker makes side by side. */
export class RemoteStore implements Store {
  readonly shared = true
  readonly #ask: Ask
  readonly #path: string
  readonly #nowUs: () => number
  #waiting: { readonly call: string; settle(outcome: Promise<Outcome>): void }[] = []

  constructor(ask: Ask, path: string, nowUs: () => number) {
    this.#ask = ask
    this.#path = path
    this.#nowUs = nowUs
  }

  consume(checks: readonly Check[], options: ConsumeOptions): Promise<readonly Verdict[]> {
    return this.#call({ method: 'consume', checks }, options)
  }

  peek(checks: readonly Check[], options: ConsumeOptions): Promise<readonly Verdict[]> {
    return this.#call({ method: 'peek', checks }, options)
  }

  refund(refunds: readonly Refund[], options: ConsumeOptions): Promise<void> {
    return this.#call({ method: 'refund', refunds }, options)
  }

  reset(keys: readonly string[], options: ConsumeOptions): Promise<void> {
    return this.#call({ method: 'reset', keys }, options)
  }

  async close(): Promise<void> {}

  async #call<T>(question: Question, { timeoutMs }: ConsumeOptions): Promise<T> {
    const outcome = await new Promise<Outcome>((settle) => {
      if (this.#waiting.length === 0) setImmediate(() => this.#flush(timeoutMs))
      this.#waiting.push({ call: encodeCall({ ...question, notAfterUs: 0 }), settle })
    })
    if ('value' in outcome) return outcome.value as T
    throw Object.assign(new Error(outcome.message), { code: outcome.code })
  }

  #flush(timeoutMs: number): void {
    const calls = this.#waiting.splice(0)
    const headers = { 'now-us': String(this.#nowUs()), 'timeout-ms': String(timeoutMs) }
    const body = JSON.stringify(calls.map(({ call }) => call))
    const answer = this.#ask(this.#path, headers, body) as Promise<Outcome[]>
    for (const [i, { settle }] of calls.entries()) settle(answer.then((outcomes) => outcomes[i] as Outcome))
  }
}
