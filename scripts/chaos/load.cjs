// What the chaos runs ask for, and of whom: the process that asks and the one that counts must agree on it.

/** The limiters that run side by side on one store, each named for what it does when the store fails. */
const modes = /** @type {const} */ (['allow', 'deny', 'local'])

/** What a key may have in a day, which no run outlasts. */
const limit = 12

/** How many processes the limiter is told of, though only one asks: each has a quarter of a limit. */
const nodes = 4
const localShare = limit / nodes

/**
 * The second policy never denies: it makes each decision one over two keys of a slot.
 * @type {import('@sluice/core').Policy[]}
 */
const policies = [
  { name: 'day', algorithm: 'fixed-window', align: 'first-request', limit, window: '1d' },
  { name: 'many', algorithm: 'gcra', limit: 1_000_000, window: '1m' },
]

/**
 * The keys of a run, in the order in which each mode asks for them. Half of the requests go to keys that reach the
 * limit in the first third, half to keys that reach it in the last third unless the limit is counted anew.
 * @param {number} requests of each mode
 */
function keysOf(requests) {
  const often = Math.round(requests / 100)
  const rarely = Math.round(requests / 50)
  return Array.from({ length: requests }, (_, i) => {
    const turn = Math.floor(i / 2)
    return i % 2 === 0 ? `often-${turn % often}` : `rarely-${turn % rarely}`
  })
}

/** A monotonic clock in milliseconds that all processes of a machine read alike. */
const nowMs = () => Number(process.hrtime.bigint()) / 1e6

/** @param {number} dueMs by {@link nowMs} */
async function at(dueMs) {
  for (let left = dueMs - nowMs(); left > 0; left = dueMs - nowMs())
    await new Promise((resolve) => setTimeout(resolve, left))
}

module.exports = { modes, limit, nodes, localShare, policies, keysOf, nowMs, at }
