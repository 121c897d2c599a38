import { algorithmNames, MemoryStore } from '../src/index.js'
import { notBuilt, runnable, runVector, vectors } from './vectors.js'

test('every vector runs, but for those of algorithms that are not built', () => {
  const left = vectors.filter((vector) => !runnable.includes(vector))
  expect(new Set(left.map(({ algorithm }) => algorithm))).toEqual(new Set(notBuilt))
  expect(algorithmNames.filter((name) => notBuilt.includes(name))).toEqual([])
  expect(algorithmNames.filter((name) => !runnable.some(({ algorithm }) => algorithm === name))).toEqual([])
  expect(runnable).toHaveLength(12)
})

describe('on the memory store', () => {
  test.each(runnable.map((vector) => [vector.id, vector.scenario, vector] as const))(
    '%s: %s',
    async (_id, _scenario, vector) => {
      let nowUs = 0
      const store = new MemoryStore({ nowUs: () => nowUs })
      await runVector(vector, store, (us) => {
        nowUs = us
      })
    },
  )
})
