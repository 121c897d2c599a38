// Measures contestants in turn, round by round.
import statistics from './statistics.cjs'

/**
 * Measures each of the rows once a round, every other round backwards, so that a drift of the machine meets all alike.
 * @param {{ name: string, kind: string, measure: () => Promise<Record<string, number>> }[]} list
 * @returns rows of { name, kind, figures } or { name, kind, error }
 */
export async function inRounds(list, rounds, onProgress = () => {}) {
  const runs = new Map(list.map((row) => [row, []]))
  const errors = new Map()
  for (let round = 0; round < rounds; round++) {
    for (const row of round % 2 ? [...list].reverse() : list) {
      if (errors.has(row)) continue
      onProgress(`round ${round + 1} of ${rounds}: ${row.name}`)
      await row.measure(round).then(
        (measured) => runs.get(row).push(measured),
        (error) => errors.set(row, error.message),
      )
    }
  }
  return list.map((row) => rowOf(row, runs.get(row), errors.get(row)))
}

/** What is shown of a contestant: the error with which it failed, else the figures of its runs. */
export function rowOf({ name, kind }, runs, error) {
  return error ? { name, kind, error } : { name, kind, figures: statistics.figuresOf(runs) }
}
