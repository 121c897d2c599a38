import { Limiter } from '@sluice/core'
import { snippetsOf } from '../../../testing/test/snippets.js'
import { functionalClient } from '../../test/redis.js'
import { startBridge } from '../../test/rest-bridge.js'
import { RedisRestStore } from './index.js'

test('the snippet of the guide runs, and charges a request', async () => {
  const client = functionalClient()
  const bridge = await startBridge(client)
  const env = { UPSTASH_REDIS_REST_URL: bridge.url, UPSTASH_REDIS_REST_TOKEN: bridge.token }
  const [snippet] = snippetsOf('redis-http.md')
  const body = `return (async () => { ${snippet?.replace('timeoutMs: 500', 'timeoutMs: 30_000')}; return decision })()`
  const decision = await new Function('RedisRestStore', 'Limiter', 'env', body)(RedisRestStore, Limiter, env)
  expect(decision).toMatchObject({ allowed: true, remaining: 99, source: 'store' })
  await bridge.close()
  await client.quit()
})
