import { randomUUID } from 'node:crypto'
import { runnable, runVector } from '../../core/test/vectors.js'
import { functionalClient } from './redis.js'
import { TimedStore } from './timed-store.js'

describe('on Redis', () => {
  const client = functionalClient()
  afterAll(() => client.quit())

  test.each(runnable.map((vector) => [vector.id, vector.scenario, vector] as const))(
    '%s: %s',
    async (_id, _scenario, vector) => {
      let nowUs = 0
      const store = new TimedStore(client, `test:${randomUUID()}:`, () => nowUs)
      await runVector(vector, store, (us) => {
        nowUs = us
      })
    },
  )
})
