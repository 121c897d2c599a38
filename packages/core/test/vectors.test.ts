import { MemoryStore } from '../src/index.js'
import { runVector, vectors } from './vectors.js'

test.each(vectors.map((vector) => [vector.id, vector.scenario, vector] as const))(
  'on the memory store, %s: %s',
  async (_id, _scenario, vector) => {
    let nowUs = 0
    const store = new MemoryStore({ nowUs: () => nowUs })
    await runVector(vector, store, (us) => {
      nowUs = us
    })
  },
)
