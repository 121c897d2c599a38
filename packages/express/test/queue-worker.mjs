// One server process of the queue test: a leaky bucket on one key, and a handler that tells when it started.
import { rateLimit } from '@sluice/express'
import { RedisStore } from '@sluice/redis'
import express from 'express'
import { Redis } from 'ioredis'

const { url, keyPrefix, policy } = JSON.parse(process.argv[2] ?? '')
const client = new Redis(url, { keyPrefix })
const store = new RedisStore(client)
const queue = rateLimit({
  store,
  name: 'queue',
  algorithm: 'leaky-bucket',
  ...policy,
  key: (req) => req.query.key,
  timeoutMs: 30_000,
  onStoreError: 'deny',
})

const app = express()
app.get('/', queue, (req, res) => {
  const startedMs = performance.timeOrigin + performance.now()
  const { atMs, delayMs } = /** @type {import('@sluice/express').Decision} */ (req.rateLimit)
  res.json({ startedMs, departsMs: atMs + delayMs, delayMs })
})
const server = app.listen(0, '127.0.0.1', () =>
  process.send?.(/** @type {import('node:net').AddressInfo} */ (server.address()).port),
)
process.once('disconnect', async () => {
  server.close()
  server.closeAllConnections()
  client.disconnect()
  await store.close()
})
