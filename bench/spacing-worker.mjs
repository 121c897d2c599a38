// One process of the spacing measurement. Without a url it is the control: it waits for moments known beforehand.
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Limiter } from '@sluice/core'
import { RedisStore } from '@sluice/redis'
import { Redis } from 'ioredis'

const { url, key, requests, processes, spacingMs, place } = JSON.parse(process.argv[2])

/** A monotonic clock that all processes of a machine read alike. */
const nowMs = () => Number(process.hrtime.bigint()) / 1e6

async function until(dueMs) {
  while (nowMs() < dueMs) await sleep(Math.max(1, dueMs - nowMs()))
  return nowMs()
}

let client
let store
let limiter
if (url) {
  client = new Redis(url)
  store = new RedisStore(client)
  const policy = { algorithm: 'leaky-bucket', limit: 20, window: '1s', queue: processes * requests - 1 }
  limiter = new Limiter({ store, name: 'spacing', timeoutMs: 30_000, onStoreError: 'deny', ...policy })
  await limiter.peek({ key })
}
process.send('ready')
const [{ startMs }] = await once(process, 'message')

async function depart(_, i) {
  if (!limiter) {
    const dueMs = startMs + (i * processes + place) * spacingMs
    return { ranMs: await until(dueMs), dueMs }
  }
  await until(startMs)
  const { allowed, delayMs, atMs } = await limiter.consume({ key })
  if (!allowed) throw new Error('denied')
  return { ranMs: await until(nowMs() + delayMs), dueMs: atMs + delayMs }
}

process.send(await Promise.all(Array.from({ length: requests }, depart)))
await limiter?.close()
await store?.close()
client?.disconnect()
process.disconnect()
