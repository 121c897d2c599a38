// Processes that lease from one store over a network, on a virtual clock. The leases, the algorithms and the count of
// processes are the real code; only time and the network are made up.
import { MemoryStore, resolvePolicy } from '@sluice/core'
import { settled, VirtualClock } from './clock.mjs'
import { mostBeyond, mostIn } from './measure.mjs'
import { chooserOf, randomFrom } from './random.mjs'

/** @typedef {import('../../packages/core/src/reservation/reservation.js').Reservation} Reservation */
/** @typedef {import('../../packages/core/src/heartbeat.js').Heartbeat} Heartbeat */
/** @typedef {import('../../packages/core/src/store.js').Store} Store */

/** What core does not export. @param {string} file @returns {Promise<any>} */
const internal = (file) => import(new URL(`../../packages/core/dist/esm/${file}.js`, import.meta.url).href)
const { Reservation } = await internal('reservation/reservation')
const { DenyCache } = await internal('deny-cache/deny-cache')
const { Heartbeat } = await internal('heartbeat')

const startUs = 1_800_000_000_000_000
/** Messages take at least this, up to so much more, and now and then a long time more, in milliseconds. */
const [leastMs, spreadMs, rareMs] = [0.2, 1, 20]
export const longestCallMs = 2 * (leastMs + spreadMs + rareMs)
/** No budget is spent in here: real timers would not keep the virtual time. */
const timeoutMs = 600_000

/**
 * @typedef {object} Setting
 * @property {number} nodes
 * @property {number} limit units a minute
 * @property {number} burst
 * @property {import('@sluice/core').Algorithm} [algorithm] default `token-bucket`
 * @property {number} [max] units of a lease. Default 50.
 * @property {boolean} [skewed] whether requests go to processes by Zipf's law
 * @property {boolean} [counted] whether processes count each other, rather than know their number
 * @property {boolean} [denyCache] whether denials are repeated without asking the store
 * @property {boolean} [drained] whether the store begins with nothing left
 * @property {number} seed
 */

export class World {
  clock = new VirtualClock()
  /** Calls to the store. */
  calls = 0
  requests = 0
  /** Denials while the store had units left. */
  falseDenials = 0
  /** The most units that were held, or on their way to processes, when somebody was denied. */
  mostHeld = 0
  /** The longest that a request waited for its answer, in milliseconds. */
  longestWaitMs = 0
  /** When units were admitted, by the store's clock, in microseconds. @type {number[]} */
  admissions = []
  /** The most processes at once. */
  mostNodes = 0
  /** @type {{ reservation: Reservation, store: Store, heartbeat: Heartbeat | undefined }[]} */
  nodes = []
  #memory = new MemoryStore({ nowUs: () => startUs + Math.floor(this.clock.nowMs * 1000) })
  #heldAtMs = Number.NEGATIVE_INFINITY
  #held = 0
  /** Units that were granted and have not arrived. */
  #onTheWay = 0

  /** @param {Setting} setting */
  constructor(setting) {
    const { algorithm = 'token-bucket', limit, burst, nodes, seed, max = 50, counted = false } = setting
    this.setting = setting
    this.random = randomFrom(seed)
    const sizes = algorithm === 'token-bucket' || algorithm === 'gcra' ? { burst } : {}
    const policy = resolvePolicy({ algorithm, limit, window: '1m', ...sizes })
    this.checks = [{ key: `k:${policy.keySuffix}`, policy, least: 1, most: 1 }]
    const lease = { max, ttlMs: 5000, nodes: counted ? undefined : nodes }
    this.options = { timeoutMs, lease, denyStaleMs: setting.denyCache ? 1000 : 0 }
    for (let i = 0; i < nodes; i++) this.join()
  }

  /** The most that may be admitted beyond what the algorithm admits, in any interval. */
  get bound() {
    const { burst, max = 50 } = this.setting
    return Math.min(this.mostNodes * max, Math.max(this.mostNodes, burst / 2))
  }

  /** The most that was admitted in any interval beyond what a bucket admits. */
  get beyond() {
    return Math.max(0, mostBeyond(this.admissions, this.setting.burst, this.setting.limit / 60e6))
  }

  /** The most that was admitted in any window. */
  get mostInWindow() {
    return mostIn(this.admissions, 60e6)
  }

  /** A process begins. */
  join() {
    const network = this.#network()
    const nowMs = () => this.clock.nowMs
    const heartbeat = this.setting.counted ? new Heartbeat(network, 'simulated', nowMs) : undefined
    const reservation = new Reservation(network, () => heartbeat?.settledNodes, {
      nowMs,
      after: (/** @type {number} */ ms, /** @type {() => void} */ call) => this.clock.after(ms, call),
    })
    const store = this.setting.denyCache ? new DenyCache(reservation, nowMs) : reservation
    this.nodes.push({ reservation, store, heartbeat })
    this.mostNodes = Math.max(this.mostNodes, this.nodes.length)
    this.choose = chooserOf(this.nodes.length, this.setting.skewed ?? false, this.random)
  }

  /** A process ends, by closing or by a crash. @param {boolean} closes */
  leave(closes) {
    const place = Math.floor(this.random() * this.nodes.length)
    const [node] = this.nodes.splice(place, 1)
    if (!node) return
    this.choose = chooserOf(this.nodes.length, this.setting.skewed ?? false, this.random)
    if (!closes) return
    void node.reservation.close()
    void node.heartbeat?.close()
  }

  /**
   * Requests that come at random times, as many as given in so many milliseconds.
   * @param {number} count @param {number} ms
   */
  async send(count, ms) {
    const startMs = this.clock.nowMs
    const times = Float64Array.from({ length: count }, () => startMs + this.random() * ms).sort()
    for (const atMs of times) {
      await this.clock.runTo(atMs)
      await this.#request()
    }
    await this.clock.runTo(startMs + ms)
  }

  /** Uses up what the store has. */
  async drain() {
    const [check] = this.checks
    if (check) await this.#memory.consume([{ ...check, least: 1, most: this.setting.burst }])
  }

  /** Lets all that is on its way arrive. */
  async end() {
    await this.clock.runTo(this.clock.nowMs + 1000)
  }

  async #request() {
    const node = this.nodes[/** @type {() => number} */ (this.choose)()]
    if (!node) return
    this.requests += 1
    const cameMs = this.clock.nowMs
    const cameUs = startUs + Math.floor(cameMs * 1000)
    void node.store.consume(this.checks, this.options).then(([verdict]) => {
      if (!verdict) throw new Error('The store did not answer')
      this.longestWaitMs = Math.max(this.longestWaitMs, this.clock.nowMs - cameMs)
      if (verdict.allowed) this.admissions.push(verdict.atUs)
      else if (verdict.remaining > 0 || (verdict.atUs < cameUs && !verdict.source)) this.falseDenials += 1
      else this.#noteHeld()
    })
    node.heartbeat?.beat(this.options)
    // What is held is spent at once; what waits goes on with the answer of the store.
    for (let turn = 0; turn < (this.setting.denyCache ? 5 : 1); turn++) await undefined
  }

  /** Takes note of what was held when somebody was denied for want of units in the store. */
  #noteHeld() {
    const held = this.#heldNow() + this.#onTheWay
    this.mostHeld = Math.max(this.mostHeld, held)
  }

  /** Units in the leases of all processes, as of some milliseconds ago at most. */
  #heldNow() {
    if (this.clock.nowMs - this.#heldAtMs >= 5) {
      this.#heldAtMs = this.clock.nowMs
      this.#held = 0
      for (const { reservation } of this.nodes) {
        const { charged, admitted, returned, expired } = reservation.tally
        this.#held += charged - admitted - returned - expired
      }
    }
    return this.#held
  }

  /** The way of one process to the store. @returns {Store} */
  #network() {
    const memory = this.#memory
    /** @template T @param {() => Promise<T>} answer @param {(answered: T) => number} [grantedOf] @returns {Promise<T>} */
    const ask = (answer, grantedOf = () => 0) => {
      this.calls += 1
      return new Promise((resolve) => {
        this.clock.after(this.#delayMs(), async () => {
          const answered = await answer()
          const granted = grantedOf(answered)
          this.#onTheWay += granted
          this.clock.after(this.#delayMs(), () => {
            this.#onTheWay -= granted
            resolve(answered)
            return settled()
          })
        })
      })
    }
    return {
      shared: true,
      consume: (checks) => {
        return ask(
          () => memory.consume(checks),
          ([verdict]) => verdict?.granted ?? 0,
        )
      },
      peek: (checks) => ask(() => memory.peek(checks)),
      refund: (refunds) => ask(() => memory.refund(refunds)),
      reset: (keys) => ask(() => memory.reset(keys)),
      close: async () => {},
    }
  }

  /** The way of one message. */
  #delayMs() {
    return leastMs + spreadMs * this.random() + (this.random() < 0.01 ? rareMs : 0)
  }
}
