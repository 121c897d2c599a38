import { type Check, type ClockUs, decide, type Refund, type Verdict } from '@sluice/core'
import { type Answer, type Call, decodeCall } from './wire.js'

/** What {@link RateLimitObject} needs of the storage of a Durable Object. */
export interface ObjectStorage {
  /** Reads values, of those keys that have one. */
  get(keys: string[]): Promise<Map<string, unknown>>
  /** Writes values, all or none. */
  put(entries: Record<string, unknown>): Promise<void>
  /** Deletes keys, and tells how many there were. */
  delete(keys: string[]): Promise<number>
  /** Deletes all keys. */
  deleteAll(): Promise<void>
  /** Reads values of keys that begin alike, in order. */
  list(options: { prefix: string; limit: number; startAfter?: string }): Promise<Map<string, unknown>>
  /** When the alarm is due, if one is set. */
  getAlarm(): Promise<number | null>
  /** Sets the alarm. */
  setAlarm(atMs: number): Promise<void>
}

/** A stored state. It ages by the times in it; `endMs` tells when nothing of it counts any more. */
interface Stored {
  readonly state: unknown
  readonly endMs: number
}

/** What one call to the storage takes. */
const batch = 128
/** How many keys an alarm looks at, so that requests need not wait for long. */
const page = 1024
/** How long a state may be kept that counts no more, so that a busy object is not woken for each. */
const graceMs = 600_000
const prefix = 'k:'

/**
 * The class of the Durable Objects in which a {@link DurableObjectStore} counts: export it from the Worker. One object
 * runs the calls to it one by one, on its own clock; its state is in its storage, written only by what charges, and an
 * alarm clears away what counts no more, within ten minutes.
 */
export class RateLimitObject {
  readonly #storage: ObjectStorage
  readonly #nowUs: ClockUs
  /** When the alarm goes off, null for never; undefined where that is not known. */
  #alarmMs: number | null | undefined
  /** The last key that the alarm has looked at, in the middle of a round. */
  #cursor: string | undefined
  /** When the first of those that it has left counts no more. */
  #firstEndMs = Number.POSITIVE_INFINITY

  /** @param options `nowUs`: the clock, in whole microseconds since the epoch; for tests */
  constructor(
    state: { readonly storage: ObjectStorage },
    _env?: unknown,
    { nowUs = () => Date.now() * 1000 }: { nowUs?: ClockUs } = {},
  ) {
    this.#storage = state.storage
    this.#nowUs = nowUs
  }

  /** Answers a {@link DurableObjectStore}. */
  async fetch(request: Request): Promise<Response> {
    let answer: Answer
    try {
      answer = await this.#run(decodeCall(await request.text()))
    } catch (error) {
      answer = { error: error instanceof Error ? error.message : String(error) }
    }
    return Response.json(answer)
  }

  /** Clears away what counts no more. */
  async alarm(): Promise<void> {
    const nowMs = this.#nowUs() / 1000
    const startAfter = this.#cursor === undefined ? {} : { startAfter: this.#cursor }
    const found = await this.#storage.list({ prefix, limit: page, ...startAfter })
    const over: string[] = []
    for (const [key, { endMs }] of found as Map<string, Stored>) {
      if (endMs <= nowMs) over.push(key)
      else this.#firstEndMs = Math.min(this.#firstEndMs, endMs)
    }
    await this.#delete(over)
    const endMs = this.#firstEndMs
    this.#cursor = found.size === page ? [...found.keys()].at(-1) : undefined
    if (this.#cursor !== undefined) return this.#setAlarm(nowMs)
    this.#firstEndMs = Number.POSITIVE_INFINITY
    if (endMs < Number.POSITIVE_INFINITY) return this.#setAlarm(endMs + graceMs)
    this.#alarmMs = null
    await this.#storage.deleteAll()
  }

  /** No call is delivered while another waits for the storage, so that each is atomic. */
  async #run(call: Call): Promise<Answer> {
    if (call.method === 'reset') {
      await this.#delete(call.keys.map((key) => prefix + key))
      return {}
    }
    const subjects: readonly (Check | Refund)[] = call.method === 'refund' ? call.refunds : call.checks
    const stored = await this.#read(subjects)
    const nowUs = this.#nowUs()
    if (nowUs > call.notAfterUs) return { lateAtUs: nowUs }
    if (call.method === 'refund') {
      await this.#refund(call.refunds, stored, nowUs)
      return {}
    }
    const outcomes = decide(call.checks, stored.map(stateOf), nowUs)
    const changes: Record<string, Stored> = {}
    const verdicts = outcomes.map(({ next, ...verdict }, i): Verdict => {
      if (next !== undefined) {
        const endMs = Math.ceil((nowUs + verdict.resetUs) / 1000) + 1000
        changes[prefix + (call.checks[i] as Check).key] = { state: next, endMs }
      }
      return verdict
    })
    if (call.method === 'consume') await this.#write(changes)
    return { verdicts }
  }

  async #refund(refunds: readonly Refund[], stored: (Stored | undefined)[], nowUs: number): Promise<void> {
    const changes: Record<string, Stored> = {}
    for (const [i, refund] of refunds.entries()) {
      const { key, policy } = refund
      const name = prefix + key
      const found = changes[name] ?? stored[i]
      const state = found && policy.refund(found.state, nowUs, refund, policy.rule)
      if (state !== undefined) changes[name] = { state, endMs: (found as Stored).endMs }
    }
    await this.#write(changes)
  }

  async #read(subjects: readonly { readonly key: string }[]): Promise<(Stored | undefined)[]> {
    const names = subjects.map(({ key }) => prefix + key)
    const found = new Map<string, unknown>()
    for (const some of batchesOf(names)) {
      for (const [name, value] of await this.#storage.get(some)) found.set(name, value)
    }
    return names.map((name) => found.get(name) as Stored | undefined)
  }

  async #write(changes: Record<string, Stored>): Promise<void> {
    const entries = Object.entries(changes)
    if (entries.length === 0) return
    const latestMs = Math.min(...entries.map(([, { endMs }]) => endMs)) + graceMs
    if (this.#alarmMs === undefined) this.#alarmMs = await this.#storage.getAlarm()
    if (this.#alarmMs === null || this.#alarmMs > latestMs) await this.#setAlarm(latestMs)
    for (const some of batchesOf(entries)) await this.#storage.put(Object.fromEntries(some))
  }

  async #setAlarm(atMs: number): Promise<void> {
    this.#alarmMs = atMs
    await this.#storage.setAlarm(atMs)
  }

  async #delete(names: readonly string[]): Promise<void> {
    for (const some of batchesOf(names)) await this.#storage.delete(some)
  }
}

function stateOf(stored: Stored | undefined): unknown {
  return stored?.state
}

function batchesOf<T>(items: readonly T[]): T[][] {
  const batches: T[][] = []
  for (let i = 0; i < items.length; i += batch) batches.push(items.slice(i, i + batch))
  return batches
}
