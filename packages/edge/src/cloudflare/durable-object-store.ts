import {
  badOption,
  type Check,
  type ConsumeOptions,
  checkWhole,
  groupBy,
  type Refund,
  refuseUnknownOptions,
  SluiceError,
  type Store,
  type Verdict,
} from '@sluice/core'
import { type Answer, type Call, encodeCall, type Question } from './wire.js'

/** A Worker's binding to {@link RateLimitObject}, as `env` has it. */
export interface ObjectNamespace {
  /** The id of the object of a name. */
  idFromName(name: string): unknown
  /** The object of an id. */
  get(id: never): ObjectStub
}

/** What is used of an object's stub. */
export interface ObjectStub {
  /** Asks the object. */
  fetch(url: string, init: { method: string; body: string }): Promise<ObjectAnswer>
}

/** What is used of an object's response. */
export interface ObjectAnswer {
  /** Reads its body. */
  json(): Promise<unknown>
}

/** Options of {@link DurableObjectStore}. */
export interface DurableObjectStoreOptions {
  /**
   * Over how many objects keys are spread, 1 to 1,000,000: for many keys of few requests each. A new number starts all
   * counts anew. Default: one object for each key, which is created near the client that comes first.
   */
  shards?: number
  /**
   * Keeps a Worker alive until a call has ended, when its response has gone out before: `waitUntil` of
   * `cloudflare:workers`. Needed for `refundWhen` and `reserve`. Default: such a call may be cut off, which gives
   * nothing back.
   */
  waitUntil?: (promise: Promise<unknown>) => void
}

/**
 * Counts in Durable Objects of Cloudflare, for all locations together: all policies of a key are in one object, and a
 * decision is one call to it.
 * @example
 * import { env } from 'cloudflare:workers'
 * export { RateLimitObject } from '@sluice/edge/cloudflare'
 * const store = new DurableObjectStore(env.RATE_LIMITS)
 */
export class DurableObjectStore implements Store {
  readonly shared = true
  readonly #namespace: ObjectNamespace
  readonly #shards: number | undefined
  readonly #waitUntil: DurableObjectStoreOptions['waitUntil']
  /** By how much the clock of an object was last ahead of this one. */
  #aheadUs = 0
  #closed = false

  /** @throws SluiceError with the option, its value and what is expected */
  constructor(namespace: ObjectNamespace, options: DurableObjectStoreOptions = {}) {
    if (typeof namespace?.idFromName !== 'function' || typeof namespace.get !== 'function') {
      throw badOption('namespace', namespace, 'the binding of a Durable Object, such as `env.RATE_LIMITS`')
    }
    refuseUnknownOptions('DurableObjectStore', options, ['shards', 'waitUntil'])
    const { shards, waitUntil } = options
    if (shards !== undefined) checkWhole('shards', shards, 1, 1e6)
    if (waitUntil !== undefined && typeof waitUntil !== 'function') {
      throw badOption('waitUntil', waitUntil, 'a function, such as `waitUntil` of `cloudflare:workers`')
    }
    this.#namespace = namespace
    this.#shards = shards
    this.#waitUntil = waitUntil
  }

  /**
   * Charges all checks or none.
   * @throws SluiceError `SLUICE_STORE_TIMEOUT` when the call reached the object after its budget, `SLUICE_STORE_FAILED`
   *   when the object failed, `SLUICE_BAD_KEY` for checks whose keys are in several objects
   */
  consume(checks: readonly Check[], options: ConsumeOptions): Promise<readonly Verdict[]> {
    return this.#decide('consume', checks, options)
  }

  peek(checks: readonly Check[], options: ConsumeOptions): Promise<readonly Verdict[]> {
    return this.#decide('peek', checks, options)
  }

  async refund(refunds: readonly Refund[], options: ConsumeOptions): Promise<void> {
    const groups = this.#byObject(refunds, ({ key }) => key)
    await Promise.all(
      [...groups].map(([object, refunds]) => this.#ask(object, { method: 'refund', refunds }, options)),
    )
  }

  async reset(keys: readonly string[], options: ConsumeOptions): Promise<void> {
    const groups = this.#byObject(keys, (key) => key)
    await Promise.all(
      [...groups].map(([object, keys]) => this.#ask(object, { method: 'reset', keys }, options)),
    )
  }

  /** Ends the use of the store; the objects stay. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true
  }

  async #decide(
    method: 'consume' | 'peek',
    checks: readonly Check[],
    options: ConsumeOptions,
  ): Promise<readonly Verdict[]> {
    const [object, ...others] = this.#byObject(checks, ({ key }) => key).keys()
    if (object === undefined) return []
    if (others.length > 0) {
      throw new SluiceError(
        'SLUICE_BAD_KEY',
        `The checks of one decision are of keys in ${others.length + 1} Durable Objects. Expected one key for all of them`,
      )
    }
    return (await this.#ask(object, { method, checks }, options)).verdicts ?? []
  }

  #byObject<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
    return groupBy(items, (item) => this.#objectOf(keyOf(item)))
  }

  /** All policies of a key share its part in braces. */
  #objectOf(key: string): string {
    const tag = /\{([^}]+)\}/.exec(key)?.[1] ?? key
    return this.#shards === undefined ? tag : `shard ${hash(tag) % this.#shards}`
  }

  /** An object that finds the call too late by a clock that has moved is asked once more, within the budget. */
  async #ask(object: string, question: Question, { timeoutMs }: ConsumeOptions): Promise<Answer> {
    if (this.#closed) throw new SluiceError('SLUICE_CLOSED', 'This DurableObjectStore was closed')
    const endUs = nowUs() + timeoutMs * 1000
    for (const attempt of [1, 2]) {
      const answer = await this.#send(object, { ...question, notAfterUs: endUs + this.#aheadUs })
      if (answer.error !== undefined) {
        throw new SluiceError('SLUICE_STORE_FAILED', `A Durable Object failed: ${answer.error}`)
      }
      if (answer.lateAtUs === undefined) return answer
      this.#aheadUs = answer.lateAtUs - nowUs()
      if (attempt === 2 || nowUs() >= endUs) break
    }
    throw new SluiceError(
      'SLUICE_STORE_TIMEOUT',
      `A Durable Object was reached later than within ${timeoutMs} ms`,
    )
  }

  /** A new stub each time: one that has failed once goes on failing. */
  async #send(object: string, call: Call): Promise<Answer> {
    const stub = this.#namespace.get(this.#namespace.idFromName(object) as never)
    const answer = stub
      .fetch('https://sluice/', { method: 'POST', body: encodeCall(call) })
      .then((response) => response.json() as Promise<Answer>)
    this.#waitUntil?.(answer.catch(() => {}))
    return answer
  }
}

function nowUs(): number {
  return Date.now() * 1000
}

/** FNV-1a. */
function hash(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash >>> 0
}
