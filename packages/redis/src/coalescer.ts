import { groupBy, type Verdict } from '@sluice/core'
import { isUncharged } from './client.js'
import { type Connection, late } from './connection.js'
import { decodeReply, encodeCall, type Group, type SentGroup } from './wire.js'

/** The most groups of a call: one call that holds everybody makes client and server take turns. */
const mostInCall = 32

/** The fewest groups that are worth a second call beside the first. */
const fewestInCall = 8

/** What the calls go over. */
export type Line = Pick<Connection, 'topology' | 'linked' | 'run' | 'corked'>

/** A group that waits for its verdicts. */
interface Waiter extends SentGroup {
  readonly slot: number
  readonly timeoutMs: number
  /** The end of its budget, by the monotonic clock. */
  readonly deadlineMs: number
  /** The same in the server's time; as of when it is sent. */
  notAfterUs: number
  resolve(verdicts: readonly Verdict[]): void
  reject(error: unknown): void
}

/**
 * Sends the groups that are asked for in one turn of the event loop together, in calls of the script. Each keeps its
 * own deadline, verdicts and error.
 */
export class Coalescer {
  readonly #line: Line
  #waiting: Waiter[] = []
  /** Whether those that wait are about to be sent. */
  #due = false
  #inFlight = 0

  constructor(line: Line) {
    this.#line = line
  }

  /**
   * Has the script run for a group.
   * @param keys of its parts, all of one slot
   * @param timeoutMs within which it must run; later it charges nothing
   * @throws SluiceError `SLUICE_STORE_FAILED` with the client's error as its cause, `SLUICE_STORE_TIMEOUT`
   */
  ask(group: Group, keys: readonly string[], timeoutMs: number): Promise<readonly Verdict[]> {
    const slot = this.#line.topology.slotOf(keys[0] as string)
    // Those of one moment share their deadline, to within a hundredth of their budgets, so that they are written once.
    const endMs = performance.now() + timeoutMs
    const deadlineMs = endMs - (endMs % (Math.max(timeoutMs, 1) / 100))
    return new Promise((resolve, reject) => {
      this.#wait({ group, keys, slot, timeoutMs, deadlineMs, notAfterUs: 0, resolve, reject })
    })
  }

  #wait(waiter: Waiter): void {
    this.#waiting.push(waiter)
    if (!this.#due) {
      this.#due = true
      // With nothing on its way there is nobody to wait for; those that follow in this turn go together.
      if (this.#inFlight === 0) this.#flush()
      else setImmediate(this.#flush)
    } else if (
      this.#waiting.length >= 2 * mostInCall &&
      !this.#line.topology.sharded &&
      !this.#line.linked()
    ) {
      // Full calls wait for nobody: the server begins while those that follow are still being asked for.
      this.#send(this.#take())
    }
  }

  readonly #flush = (): void => {
    const linked = this.#line.linked()
    if (linked) {
      linked.then(this.#flush, this.#refuse)
      return
    }
    this.#due = false
    this.#send(this.#take())
  }

  readonly #refuse = (error: unknown): void => {
    this.#due = false
    for (const { reject } of this.#take()) reject(error)
  }

  #take(): readonly Waiter[] {
    const waiting = this.#waiting
    this.#waiting = []
    return waiting
  }

  #send(waiting: readonly Waiter[]): void {
    if (!this.#line.topology.sharded) {
      this.#sendSlot(waiting)
      return
    }
    const slots = groupBy(waiting, ({ slot }) => slot)
    this.#line.corked(() => {
      for (const waiters of slots.values()) this.#sendSlot(waiters)
    })
  }

  #sendSlot(waiting: readonly Waiter[]): void {
    // Two calls keep the server at work while the answers of the first are read.
    const size = Math.min(mostInCall, Math.max(fewestInCall, Math.ceil(waiting.length / 2)))
    for (let i = 0; i < waiting.length; i += size) void this.#call(waiting.slice(i, i + size))
  }

  async #call(waiting: readonly Waiter[]): Promise<void> {
    const nowMs = performance.now()
    const waiters = waiting.filter((waiter) => waiter.deadlineMs > nowMs || giveUp(waiter))
    const [first] = waiters
    if (!first) return
    const { topology } = this.#line
    const nowUs = topology.clockOf(first.slot).nowUs()
    for (const waiter of waiters) waiter.notAfterUs = nowUs + Math.floor((waiter.deadlineMs - nowMs) * 1000)
    this.#inFlight += 1
    try {
      const reply = await this.#line.run(encodeCall(waiters))
      const { atUs, verdicts } = decodeReply(reply, waiters)
      // Asked for again: a slot that has moved has another master by now.
      topology.clockOf(first.slot).heard(atUs)
      for (const [i, waiter] of waiters.entries()) this.#settle(waiter, verdicts[i])
    } catch (error) {
      // Alone, those that are not to blame may pass.
      if (waiters.length > 1 && isUncharged(error)) for (const waiter of waiters) void this.#call([waiter])
      else for (const { reject } of waiters) reject(error)
    } finally {
      this.#inFlight -= 1
    }
  }

  /**
   * A server whose clock is unknown or was set forward finds the first call late; its reply tells its clock, and the
   * second fits.
   */
  #settle(waiter: Waiter, verdicts: readonly Verdict[] | undefined): void {
    if (verdicts) waiter.resolve(verdicts)
    else if (performance.now() < waiter.deadlineMs) this.#wait(waiter)
    else giveUp(waiter)
  }
}

/** Nobody waits for it any more. */
function giveUp({ timeoutMs, reject }: Waiter): false {
  reject(late(timeoutMs))
  return false
}
