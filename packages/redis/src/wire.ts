import type { Check, Refund, ResolvedPolicy, Verdict } from '@sluice/core'

/** What the script does as a whole: a decision, all or nothing, or refunds, each of which stands for itself. */
export type Group =
  | { readonly mode: 'peek' | 'charge'; readonly parts: readonly Check[] }
  | { readonly mode: 'refund'; readonly parts: readonly Refund[] }

/** A group as it goes out. */
export interface SentGroup {
  readonly group: Group
  /** Of its parts, as the server knows them. */
  readonly keys: readonly string[]
  /** The time of the server in microseconds after which it comes too late. */
  readonly notAfterUs: number
}

/** What the script is called with; its form is described at the head of `engine.lua`. */
export interface Call {
  readonly keys: readonly string[]
  readonly argument: Uint8Array
}

/** Puts groups into one call. */
export function encodeCall(groups: readonly SentGroup[]): Call {
  const keys: string[] = []
  const places = new Map<string, number>()
  const placeOf = (key: string): number => {
    let place = places.get(key)
    if (place === undefined) {
      place = keys.push(key)
      places.set(key, place)
    }
    return place
  }
  const writer = new Writer()
  for (const { group, keys, notAfterUs } of groups) {
    const at = keys.map(placeOf)
    if (group.mode === 'refund') writer.refunds(group.parts, at, notAfterUs)
    else writer.checks(group.mode === 'charge', group.parts, at, notAfterUs)
  }
  return { keys, argument: writer.written() }
}

/** Equal groups whose keys are equally far apart; they are written once. */
interface Run {
  /** Where it is written. */
  readonly start: number
  readonly charge: boolean
  readonly checks: readonly Check[]
  readonly places: readonly number[]
  readonly notAfterUs: number
  groups: number
  stride: number
}

const headBytes = 15
const policyBytes = 59
const partBytes = 77

/** Where calls are written; most are much shorter. */
let scratch = new DataView(new ArrayBuffer(64 * partBytes))

class Writer {
  #size = 0
  #run: Run | undefined

  checks(charge: boolean, checks: readonly Check[], places: readonly number[], notAfterUs: number): void {
    const run = this.#run
    const stride = run ? (places[0] as number) - (run.places[0] as number) - (run.groups - 1) * run.stride : 0
    if (run && isNext(run, stride, charge, checks, places, notAfterUs)) {
      run.groups += 1
      run.stride = stride
      scratch.setUint16(run.start + 9, run.groups, true)
      scratch.setUint16(run.start + 13, stride, true)
      return
    }
    this.#run = { start: this.#size, charge, checks, places, notAfterUs, groups: 1, stride: 0 }
    this.#head(notAfterUs, charge ? 1 : 0, checks.length)
    for (const [i, { policy, least, most }] of checks.entries()) {
      this.#part(places[i] as number, policy, least, most)
    }
  }

  refunds(refunds: readonly Refund[], places: readonly number[], notAfterUs: number): void {
    this.#run = undefined
    for (const [i, { policy, units, atUs, resetUs }] of refunds.entries()) {
      this.#head(notAfterUs, 2, 1)
      this.#part(places[i] as number, policy, units, atUs + resetUs)
    }
  }

  written(): Uint8Array {
    return new Uint8Array(scratch.buffer).slice(0, this.#size)
  }

  #head(notAfterUs: number, mode: number, count: number): void {
    const at = this.#grow(headBytes)
    scratch.setFloat64(at, notAfterUs, true)
    scratch.setUint8(at + 8, mode)
    scratch.setUint16(at + 9, 1, true)
    scratch.setUint16(at + 11, count, true)
    scratch.setUint16(at + 13, 0, true)
  }

  #part(place: number, policy: ResolvedPolicy, first: number, second: number): void {
    const at = this.#grow(partBytes)
    scratch.setUint16(at, place, true)
    new Uint8Array(scratch.buffer).set(bytesOf(policy), at + 2)
    scratch.setFloat64(at + 2 + policyBytes, first, true)
    scratch.setFloat64(at + 10 + policyBytes, second, true)
  }

  /** Makes room for some bytes. */
  #grow(bytes: number): number {
    const at = this.#size
    this.#size += bytes
    if (this.#size > scratch.byteLength) {
      const larger = new Uint8Array(2 * this.#size)
      larger.set(new Uint8Array(scratch.buffer))
      scratch = new DataView(larger.buffer)
    }
    return at
  }
}

/** Whether a group is the next of a run, its keys as far apart from those before as `stride`. */
function isNext(
  run: Run,
  stride: number,
  charge: boolean,
  checks: readonly Check[],
  places: readonly number[],
  notAfterUs: number,
): boolean {
  if (run.charge !== charge || run.notAfterUs !== notAfterUs || run.checks.length !== checks.length)
    return false
  if (stride < 0 || (run.groups > 1 && run.stride !== stride)) return false
  return checks.every(({ policy, least, most }, i) => {
    const check = run.checks[i] as Check
    return (
      check.policy === policy &&
      check.least === least &&
      check.most === most &&
      places[i] === (run.places[i] as number) + run.groups * stride
    )
  })
}

/** Policies never change, so each is written once. */
const policies = new WeakMap<ResolvedPolicy, Uint8Array>()

function bytesOf(policy: ResolvedPolicy): Uint8Array {
  let bytes = policies.get(policy)
  if (!bytes) {
    bytes = new Uint8Array(policyBytes)
    const [code, ...numbers] = policy.wire as [string, ...number[]]
    const view = new DataView(bytes.buffer)
    bytes.set([code.charCodeAt(0), code.charCodeAt(1), numbers[0] as number])
    for (const [i, number] of numbers.slice(1).entries()) view.setFloat64(3 + 8 * i, number, true)
    policies.set(policy, bytes)
  }
  return bytes
}

/** What the script said of a call. */
export interface Reply {
  /** The server's TIME in microseconds. */
  readonly atUs: number
  /** Of each group a verdict for each part; undefined where it came too late: nothing was read or charged. */
  readonly verdicts: readonly (readonly Verdict[] | undefined)[]
}

const verdictBytes = 40

/** Reads the script's reply to a call of these groups. */
export function decodeReply(reply: Uint8Array, groups: readonly Pick<SentGroup, 'group'>[]): Reply {
  const view = new DataView(reply.buffer, reply.byteOffset, reply.byteLength)
  const atUs = view.getFloat64(0, true)
  const verdicts: (readonly Verdict[] | undefined)[] = []
  let at = 8
  for (const { group } of groups) {
    const { length } = group.parts
    const isLate = length > 0 && view.getFloat64(at, true) === -1
    const own: Verdict[] = []
    for (let part = 0; part < length; part++, at += verdictBytes) own.push(verdictAt(view, at, atUs))
    verdicts.push(isLate ? undefined : own)
  }
  return { atUs, verdicts }
}

function verdictAt(view: DataView, at: number, atUs: number): Verdict {
  const outcome = view.getFloat64(at, true)
  const allowed = outcome % 2 === 1
  const waitUs = view.getFloat64(at + 16, true)
  return {
    allowed,
    granted: Math.floor(outcome / 2),
    remaining: view.getFloat64(at + 8, true),
    retryUs: allowed ? 0 : waitUs,
    replenishUs: view.getFloat64(at + 24, true),
    resetUs: view.getFloat64(at + 32, true),
    delayUs: allowed ? waitUs : 0,
    atUs,
  }
}
