// Counts what became of the requests of one fault, and says what should not have.
const { limit, localShare, modes } = require('./load.cjs')

/** @typedef {import('./run.cjs').Row} Row */
/** @typedef {import('./run.cjs').Run} Run */
/** @typedef {import('./run.cjs').Size} Size */
/** @typedef {import('./run.cjs').Mode} Mode */
/** @typedef {import('./run.cjs').Fault} Fault */

/** How much later than its budget a request may be answered. */
const graceMs = 50

/** How soon after a fresh connection was served the store must make all decisions again. */
const normalWithinMs = 2000

/** How long before another server took over a write can have been made that this one lacks. */
const lostWithinMs = 100

/** How many decisions in a hundred a fault without an outage may cost. */
const fewPercent = 1

/**
 * The cells of a fault, one for each mode, and what is not as it should be: `broken` by the limiter, whatever else
 * there was; `strained`, as on a machine so busy that the store itself is late; and `late`, which is about times.
 * @param {Fault} fault
 * @param {Run} run
 * @param {Size} size
 */
function tally(fault, run, size) {
  const { down, up, lines, unhandled, warnings } = run.report
  const checks = [
    { ok: unhandled.length === 0, not: `unhandled rejections: ${unhandled}` },
    { ok: warnings.length === 0, not: `warnings of the process: ${warnings}` },
    { ok: down.length === up, not: `${down.length} times store-down and ${up} times store-up` },
    { ok: lines.length === down.length + up, not: `lines of the log: ${lines.join(' / ')}` },
  ]
  const ifIdle = [
    { ok: fault.misses !== 'none' || down.length === 0, not: `store-down: ${down}` },
    {
      ok: fault.misses !== 'all' || down.length === 1,
      not: `${down.length} times store-down for one outage`,
    },
  ]
  const cells = modes.map((mode) => tallyMode(fault, run, size, mode))
  return { cells, broken: broken(checks), strained: broken(ifIdle) }
}

/** @typedef {ReturnType<typeof tallyMode>} Cell */

/**
 * @param {Fault} fault
 * @param {Run} run
 * @param {Size} size
 * @param {Mode} mode
 */
function tallyMode(fault, run, { requests, timeoutMs }, mode) {
  const rows = run.report.rows.filter((row) => row.mode === mode)
  const byStore = rows.filter((row) => row.degraded === false)
  const degraded = rows.filter((row) => row.degraded)
  const waits = rows.map((row) => row.settledMs - row.askedMs).sort((a, b) => a - b)
  const wait = (/** @type {number} */ share) => Number(waits[Math.ceil(share * waits.length) - 1])
  const cell = {
    mode,
    ...outcomes(rows),
    failed: rows.filter((row) => row.thrown !== undefined).length,
    degraded: { all: degraded.length, ...outcomes(degraded) },
    causes: run.report.storeErrors[mode],
    ...storeCounts(fault, run, byStore, mode),
    localMost: Math.max(0, ...perKey(admitted(rows.filter(({ source }) => source === 'local'))).values()),
    waitMs: { half: wait(0.5), p99: wait(0.99), worst: wait(1) },
    normalMs: fault.misses === 'none' ? Number.NaN : normalMs(run, byStore, degraded),
  }

  const causes = Object.values(cell.causes).reduce((sum, count) => sum + count, 0)
  const latestMs = timeoutMs + graceMs
  const many = (requests * fewPercent) / 100
  const checks = [
    { ok: rows.length === requests, not: `${rows.length} of ${requests} requests were settled` },
    { ok: cell.failed === 0, not: `thrown: ${rows.find((row) => row.thrown)?.thrown}` },
    { ok: cell.beyond.length === 0, not: `admitted beyond the bound: ${cell.beyond}` },
    { ok: causes === degraded.length, not: `${causes} store errors, ${degraded.length} degraded decisions` },
    { ok: mode === 'local' || cell.degraded.denied === 0, not: 'a quota was made up' },
    { ok: mode === 'deny' || cell.refused === 0, not: 'a request was refused for a store fault' },
    { ok: mode !== 'deny' || cell.degraded.served === 0, not: 'a request was served uncounted' },
    {
      ok: mode !== 'local' || cell.localMost <= localShare,
      not: `${cell.localMost} served locally of a key`,
    },
  ]
  const ifIdle = [
    { ok: cell.mostOfKey >= limit, not: 'no key reached its limit' },
    fault.misses === 'none'
      ? { ok: degraded.length <= many, not: `${degraded.length} degraded decisions without an outage` }
      : { ok: degraded.length > many, not: 'the fault missed the store' },
  ]
  const times = [
    { ok: cell.waitMs.worst <= latestMs, not: `a wait of ${cell.waitMs.worst.toFixed(1)} of ${latestMs} ms` },
    { ok: !(cell.normalMs > normalWithinMs), not: `normal after ${cell.normalMs.toFixed(0)} ms` },
  ]
  return { ...cell, broken: broken(checks), strained: broken(ifIdle), late: broken(times) }
}

/** @param {{ ok: boolean, not: string }[]} checks */
const broken = (checks) => checks.flatMap(({ ok, not }) => (ok ? [] : [not]))

/** @param {Row[]} rows */
const admitted = (rows) => rows.filter((row) => row.allowed)

/** @param {Row[]} rows */
function outcomes(rows) {
  const not = rows.filter((row) => row.allowed === false)
  const refused = not.filter((row) => row.reason === 'store-error').length
  return { served: admitted(rows).length, denied: not.length - refused, refused }
}

/** @param {{ key: string }[]} rows */
function perKey(rows) {
  /** @type {Map<string, number>} */
  const counts = new Map()
  for (const { key } of rows) counts.set(key, (counts.get(key) ?? 0) + 1)
  return counts
}

/**
 * What the store admitted, against what it may have and what it holds in the end.
 * @param {Fault} fault
 * @param {Run} run
 * @param {Row[]} byStore
 * @param {Mode} mode
 */
function storeCounts({ lives = 1, takenOver = false }, run, byStore, mode) {
  const grants = admitted(byStore)
  const perhapsLost = grants.filter(({ settledMs }) => {
    return takenOver && settledMs >= run.beginsMs - lostWithinMs && settledMs <= run.begunMs
  })
  const lost = perKey(perhapsLost)
  const counts = perKey(grants)
  const held = run.report.counted.filter((counted) => counted.mode === mode)
  const bound = (/** @type {string} */ key) => lives * limit + (lost.get(key) ?? 0)
  return {
    admitted: grants.length,
    mostOfKey: Math.max(0, ...counts.values()),
    perhapsLost: perhapsLost.length,
    beyond: [...counts].flatMap(([key, count]) => (count > bound(key) ? [`${key}: ${count}`] : [])),
    held: held.reduce((sum, { units = Number.NaN }) => sum + units, 0),
  }
}

/**
 * From the moment when a fresh connection was served to the first decision of the store after the last without it.
 * @param {Run} run
 * @param {Row[]} byStore
 * @param {Row[]} degraded
 */
function normalMs({ servedMs }, byStore, degraded) {
  if (servedMs === undefined) return Number.NaN
  const lastMs = Math.max(0, ...degraded.map((row) => row.dueMs))
  const after = byStore.filter((row) => row.dueMs > lastMs && row.settledMs > servedMs)
  return Math.min(...after.map((row) => row.settledMs)) - servedMs
}

module.exports = { tally, graceMs, normalWithinMs, lostWithinMs, fewPercent }
