import { randomUUID } from 'node:crypto'
import { runVector, vectors } from '../../core/test/vectors.js'
import { functionalClient } from './redis.js'
import { TimedStore } from './timed-store.js'

const client = functionalClient()
afterAll(() => client.quit())

test.each(vectors.map((vector) => [vector.id, vector.scenario, vector] as const))(
  'on Redis, %s: %s',
  async (_id, _scenario, vector) => {
    let nowUs = 0
    const store = new TimedStore(client, `test:${randomUUID()}:`, () => nowUs)
    await runVector(vector, store, (us) => {
      nowUs = us
    })
  },
)
