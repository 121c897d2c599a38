// Plays one fault: starts the servers and the process under test, begins the fault at one third and ends it at two.
const { fork } = require('node:child_process')
const { once } = require('node:events')
const path = require('node:path')
const { monitorEventLoopDelay } = require('node:perf_hooks')
const { at, nowMs } = require('./load.cjs')

/** @typedef {'allow' | 'deny' | 'local'} Mode */
/** @typedef {{ url: string } | { sentinels: Address[], name: string } | { startupNodes: Address[] }} Connection */
/** @typedef {{ host: string, port: number }} Address */

/**
 * @typedef {object} Size
 * @property {number} requests of each mode, about 2500
 * @property {number} perSecond of each mode
 * @property {number} timeoutMs
 */
/** @typedef {Size & { connection: Connection }} Order what the process under test is told */

/**
 * @typedef {object} Row a request and what became of it; times by the clock of all processes
 * @property {Mode} mode
 * @property {string} key
 * @property {number} dueMs
 * @property {number} askedMs
 * @property {number} settledMs
 * @property {boolean} [allowed]
 * @property {string} [reason]
 * @property {string} [source]
 * @property {boolean} [degraded]
 * @property {string} [thrown]
 */

/**
 * @typedef {object} Report what the process under test tells at its end
 * @property {Row[]} rows
 * @property {{ mode: Mode, key: string, units?: number }[]} counted what the store holds against each key at the end
 * @property {Record<Mode, Record<string, number>>} storeErrors
 * @property {string[]} down the cause of each store-down
 * @property {number} up
 * @property {string[]} lines of the log
 * @property {string[]} unhandled rejections
 * @property {string[]} warnings of the process
 */

/**
 * @typedef {object} Run
 * @property {Report} report
 * @property {number} beginsMs when the fault began
 * @property {number} begunMs when it had begun for certain
 * @property {number} strikes how often the fault struck
 * @property {number} [awayMs] for how long no fresh connection was served; undefined if each was
 * @property {number} [servedMs] when one was served again
 * @property {number} stallMs the longest for which this process, which plays the fault, stood still
 */

/** @typedef {import('./faults.cjs').Fault<any>} Fault */

/**
 * @param {Fault} fault
 * @param {Size} size
 * @returns {Promise<Run>}
 * @throws if the process under test crashed
 */
async function run(fault, size) {
  const lab = await fault.lab()
  try {
    return await runIn(lab, fault, size)
  } finally {
    await lab.stop()
  }
}

/**
 * @param {import('./faults.cjs').Lab} lab
 * @param {Fault} fault
 * @param {Size} size
 */
async function runIn(lab, fault, size) {
  const worker = startWorker({ connection: lab.connection, ...size })
  const fresh = watch()
  try {
    await worker.next()
    const loop = monitorEventLoopDelay({ resolution: 5 })
    loop.enable()
    const startMs = nowMs() + 100
    const lastsMs = (size.requests * 1000) / size.perSecond
    const answer = worker.next()
    worker.send({ startMs })
    const played = (async () => {
      await at(startMs + lastsMs / 3)
      const beginsMs = nowMs()
      fresh.start(() => lab.served(size.timeoutMs))
      const end = await fault.begin(lab, lastsMs / 3)
      const begunMs = nowMs()
      await at(startMs + (2 * lastsMs) / 3)
      const strikes = await end?.()
      return { beginsMs, begunMs, strikes: typeof strikes === 'number' ? strikes : 1 }
    })()
    // The fault is played to its end, whatever happens: the servers are stopped after that.
    await Promise.allSettled([played, answer])
    loop.disable()
    const report = await answer
    await worker.ended()
    return { report, ...(await played), ...(await fresh.outage()), stallMs: loop.max / 1e6 }
  } finally {
    fresh.stop()
    worker.kill()
  }
}

/** @param {Order} order */
function startWorker(order) {
  const child = fork(path.join(__dirname, 'worker.mjs'), [JSON.stringify(order)], {
    execArgv: [],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  let stderr = ''
  child.stderr?.on('data', (chunk) => {
    stderr += chunk
  })
  const exit = once(child, 'exit')
  const crash = exit.then(([code, signal]) => {
    throw new Error(`the process ended with ${signal ?? `exit code ${code}`}: ${stderr}`)
  })
  crash.catch(() => {})
  return {
    send: (/** @type {object} */ message) => child.send(message),
    next: async () => (await Promise.race([once(child, 'message'), crash]))[0],
    /** Resolves once it has ended by itself, and well. */
    ended: async () => {
      const late = setTimeout(() => child.kill('SIGKILL'), 5000)
      await exit.then(([code]) => code === 0 || crash)
      clearTimeout(late)
    },
    kill: () => child.kill('SIGKILL'),
  }
}

/** How many fresh connections must be served one after the other before service counts as back. */
const inARow = 10

/** Tries over and over, without waiting for the try before, to have a fresh connection served. */
function watch() {
  /** @type {Promise<{ startedMs: number, servedMs: number | undefined }>[]} */
  const attempts = []
  /** @type {NodeJS.Timeout | undefined} */
  let timer
  return {
    start: (/** @type {() => Promise<unknown>} */ attempt) => {
      timer = setInterval(() => {
        const startedMs = nowMs()
        attempts.push(
          attempt().then(
            () => ({ startedMs, servedMs: nowMs() }),
            () => ({ startedMs, servedMs: undefined }),
          ),
        )
      }, 25)
    },
    stop: () => clearInterval(timer),
    outage: async () => {
      const tries = await Promise.all(attempts)
      const first = tries.findIndex(({ servedMs }) => servedMs === undefined)
      const lasting = tries.findIndex((_, i) => {
        return i > first && tries.slice(i, i + inARow).every(({ servedMs }) => servedMs !== undefined)
      })
      if (first === -1 || lasting === -1) return {}
      const servedMs = Number(tries[lasting]?.servedMs)
      return { servedMs, awayMs: servedMs - Number(tries[first]?.startedMs) }
    },
  }
}

module.exports = { run }
