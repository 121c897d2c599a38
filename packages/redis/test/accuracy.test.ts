import { algorithmNames } from '@sluice/core'
import { startCluster } from '../../../scripts/servers/cluster.cjs'
import { startSentinel } from '../../../scripts/servers/sentinel.cjs'
import { calls, limit, processes, type Reach, runProcesses } from './accuracy.js'

const stops: (() => Promise<unknown>)[] = []
afterAll(() => Promise.all(stops.map((stop) => stop())))

describe.each<[string, () => Promise<Reach>]>([
  ['one server', async () => ({ url: process.env.REDIS_URL })],
  [
    'a Cluster',
    async () => {
      const { startupNodes, stop } = await startCluster()
      stops.push(stop)
      return { startupNodes }
    },
  ],
  [
    'a master behind Sentinels',
    async () => {
      const { sentinels, name, stop } = await startSentinel()
      stops.push(stop)
      return { options: { sentinels, name } }
    },
  ],
])(`on %s, ${processes} processes with ${calls} concurrent calls each on one key`, (_, reachOf) => {
  let reach: Reach
  beforeAll(async () => {
    reach = await reachOf()
  })

  test.each(algorithmNames.map((name) => [name] as const))(
    '%s admits exactly the limit',
    async (algorithm) => {
      expect(await runProcesses(algorithm, reach)).toEqual({ admitted: limit, degraded: 0 })
    },
  )
})
