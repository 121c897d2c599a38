// A server that posts to ALERT_URL when its Redis goes down and comes back. Needs REDIS_URL; PORT is 3000 by default.
import { rateLimit } from '@sluice/express'
import { RedisStore } from '@sluice/redis'
import express from 'express'
import { Redis } from 'ioredis'
import { alertTo } from './alert-to.mjs'

const { REDIS_URL, ALERT_URL, PORT = '3000' } = process.env
if (!REDIS_URL || !ALERT_URL) {
  console.error(
    'Set REDIS_URL, such as redis://127.0.0.1:6379, and ALERT_URL, such as that of a Slack webhook.',
  )
  process.exit(1)
}

// The store has a connection of its own; this client only says where to.
const store = new RedisStore(new Redis(REDIS_URL, { lazyConnect: true }))
const onEvent = alertTo(ALERT_URL)

const app = express()
app.use(rateLimit({ store, onEvent, name: 'site', limit: 1000, window: '1m' }))
app.use('/api', rateLimit({ store, onEvent, name: 'api', limit: 100, window: '1m' }))
app.get('/api', (req, res) => {
  res.json({ remaining: req.rateLimit.remaining })
})

const server = app.listen(Number(PORT), '127.0.0.1', (error) => {
  if (error) throw error
  console.log(`listening on http://127.0.0.1:${server.address().port}`)
})
