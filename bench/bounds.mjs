// What an adversary gets admitted in one window, and what a client that always asks gets in the long run, by the steps
// themselves on a virtual clock.
import { algorithmNames, resolvePolicy } from '@sluice/core'
import { policyOf } from './policies.mjs'

const limit = 100
const windowUs = 60_000_000
const startUs = 30_000_000 * windowUs

function client(algorithm) {
  const { step, rule } = resolvePolicy(policyOf(algorithm, limit, windowUs / 1000))
  let state
  const ask = (atUs, cost) => {
    const answer = step(state, startUs + atUs, cost, rule)
    state = answer.next ?? state
    return answer
  }
  return {
    one: (atUs) => ask(atUs, 1).allowed,
    /** Takes all there is. */
    all(atUs) {
      const { remaining } = ask(atUs, 0)
      if (remaining > 0) ask(atUs, remaining)
      return remaining
    },
  }
}

/**
 * The most units admitted in any window: all there is at one moment, then from another on all there is as soon as it is
 * there. Tries both moments over a window and its edges.
 */
function adversary(algorithm) {
  const moments = [...Array.from({ length: 20 }, (_, i) => (i * windowUs) / 20), windowUs - 1]
  let most = 0
  for (const first of moments) {
    for (const pause of moments) {
      const { all } = client(algorithm)
      const taken = [[first, all(first)]]
      for (let us = first + pause; us < first + 2 * windowUs; us += windowUs / 500) taken.push([us, all(us)])
      most = Math.max(most, mostInWindow(taken))
    }
  }
  return most
}

function mostInWindow(taken) {
  let [most, sum, from] = [0, 0, 0]
  for (const [us, units] of taken) {
    sum += units
    while (taken[from][0] <= us - windowUs) sum -= taken[from++][1]
    most = Math.max(most, sum)
  }
  return most
}

/** The share of the limit that a client gets who asks ten times as often, over 50 windows after the first 10. */
function sustained(algorithm) {
  const { one } = client(algorithm)
  let admitted = 0
  for (let us = 0; us < 60 * windowUs; us += windowUs / (10 * limit)) {
    if (one(us) && us >= 10 * windowUs) admitted += 1
  }
  return admitted / (50 * limit)
}

/** By algorithm, for a limit of 100: { most, sustained }. */
export function measureBounds() {
  return Object.fromEntries(
    algorithmNames.map((name) => [name, { most: adversary(name), sustained: sustained(name) }]),
  )
}
