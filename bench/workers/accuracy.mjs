// One of several processes that share one key. Task: { name, url, cluster, sentinels, burst, hammer }. Told when to start
// by messages with a moment of the monotonic clock, which all processes of a machine have in common.
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Cluster, Redis } from 'ioredis'
import { contestants } from '../contestants/redis.mjs'

const { name, url, cluster, sentinels, burst, hammer } = JSON.parse(process.argv[2])
const nowMs = () => Number(process.hrtime.bigint()) / 1e6
const connect =
  (cluster && (() => new Cluster(cluster))) ?? (sentinels && (() => new Redis({ sentinels, name: 'main' })))

async function open(options) {
  const opened = await contestants[name](url, { ...options, connect: connect || undefined })
  await opened.ask(`warm-up ${process.pid}`)
  return opened
}

async function start() {
  process.send('ready')
  const [{ startMs }] = await once(process, 'message')
  while (nowMs() < startMs) await sleep(Math.max(1, startMs - nowMs() - 1))
  return startMs
}

const { ask, close } = await open(burst)
await start()
const answers = await Promise.all(Array.from({ length: burst.requests }, () => ask('burst')))
const report = { burst: answers.filter(Boolean).length }
await close()

if (hammer) {
  // One request, silence until shortly before the window that it opened ends, then as many as there is time for.
  const { windowMs, callers, windows, first } = hammer
  const { ask, close } = await open(hammer)
  const startMs = await start()
  const admitted = []
  const keep = async () => {
    const from = nowMs()
    if (await ask('hammer')) admitted.push([from, nowMs()])
  }
  if (first) await keep()
  await sleep(startMs + windowMs - 60 - nowMs())
  const call = async () => {
    while (nowMs() < startMs + windows * windowMs) {
      await keep()
      await sleep(1)
    }
  }
  await Promise.all(Array.from({ length: callers }, call))
  report.admitted = admitted
  await close()
}
process.send(report)
process.disconnect()
