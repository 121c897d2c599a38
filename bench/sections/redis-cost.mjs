import { runWorker } from '../children.mjs'
import { controls, kindOf, modes, peers, strict, threePolicies } from '../contestants/redis.mjs'
import { inRounds } from '../rounds.mjs'

const rowsOf = (names, program, { url, client }, lengths) =>
  names.map((name) => ({
    name,
    kind: kindOf(name),
    async measure() {
      await client.flushall()
      return runWorker(program, { name, url, ...lengths })
    },
  }))

/** Redis CPU, commands and bytes of a decision. */
export function measureRedisCost(redis, { quick }, onProgress) {
  const names = Object.keys({ ...controls, ...strict, ...modes, ...threePolicies, ...peers })
  const lengths = quick ? { warmUpMs: 60, ms: 60 } : { warmUpMs: 1000, ms: 600 }
  return inRounds(rowsOf(names, 'redis-cost.mjs', redis, lengths), quick ? 1 : 3, onProgress)
}

/** Commands for clients that are denied anyway. */
export function measureDenials(redis, { quick }, onProgress) {
  const names = ['gcra', 'gcra, deny cache', ...Object.keys(peers)]
  return inRounds(rowsOf(names, 'denials.mjs', redis, { ms: quick ? 1000 : 4500 }), 1, onProgress)
}

/** Commands of a node that reserves. */
export function measureReservation(redis, { quick }, onProgress) {
  const names = Object.keys(modes).filter((name) => name.includes('reservation'))
  const lengths = quick ? { settleMs: 3000, ms: 500 } : { settleMs: 6000, ms: 2000 }
  return inRounds(rowsOf(names, 'reservation.mjs', redis, lengths), 1, onProgress)
}
