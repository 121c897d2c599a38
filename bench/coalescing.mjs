// How many decisions a call of the script carries: on Express, with 64 keep-alive connections that each wait for their
// reply; and of many requests in one turn of the event loop, as they come and after the server has forgotten the script,
// how many are decided within the default budget.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import http from 'node:http'
import { Limiter } from '@sluice/core'
import { rateLimit } from '@sluice/express'
import { RedisStore } from '@sluice/redis'
import express from 'express'
import { Redis } from 'ioredis'
import { withRedis } from './servers.mjs'

const connections = 64
const requests = 20_000
const burst = 5000
const budgetMs = 100

if (process.argv[2]) await serve(process.argv[2])
else await withRedis(report)

async function report({ client, version, url }) {
  console.log(`${version}, Node.js ${process.version}`)
  const server = fork(process.argv[1], [url])
  const [port] = await once(server, 'message')
  await load(port, requests / 10)
  await client.config('RESETSTAT')
  await load(port, requests)
  const calls = await callsOf(client)
  server.kill()
  console.log(
    `Express, ${connections} connections: ${(requests / calls).toFixed(1)} decisions per call (${requests} in ${calls})`,
  )

  const store = new RedisStore(client)
  const limiter = new Limiter({ store, name: 'burst', limit: 100_000, window: '1h', timeoutMs: 30_000 })
  for (let i = 0; i < 5; i++) await decideAtOnce(limiter)
  for (const forget of [false, true, false, true]) {
    if (forget) await client.script('FLUSH')
    await client.config('RESETSTAT')
    const cpu = process.cpuUsage()
    const times = await decideAtOnce(limiter)
    const { user, system } = process.cpuUsage(cpu)
    const inTime = times.filter((ms) => ms <= budgetMs).length
    console.log(
      `${burst} requests in one turn${forget ? ' after SCRIPT FLUSH' : ''}: ${inTime} decided within ${budgetMs} ms, the last after ${Math.round(Math.max(...times))} ms, in ${await callsOf(client)} calls and ${Math.round((user + system) / 1000)} ms of CPU`,
    )
  }
  await limiter.close()
  await store.close()
}

/** How long each of many requests took, all of which come in one turn. */
function decideAtOnce(limiter) {
  return Promise.all(
    Array.from({ length: burst }, async (_, i) => {
      const startMs = performance.now()
      const { degraded } = await limiter.consume({ key: `user:${i % 500}` })
      return degraded ? Number.POSITIVE_INFINITY : performance.now() - startMs
    }),
  )
}

/** Calls of the script since the counts were reset. */
async function callsOf(client) {
  const stats = await client.info('commandstats')
  const callsOfCommand = (name) => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0)
  return callsOfCommand('evalsha') + callsOfCommand('eval')
}

async function load(port, count) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: connections })
  let sent = 0
  const run = async () => {
    while (sent < count) await get(port, agent, `user:${sent++ % 10_000}`)
  }
  await Promise.all(Array.from({ length: connections }, run))
  agent.destroy()
}

function get(port, agent, user) {
  return new Promise((resolve, reject) => {
    const request = http.get({ host: '127.0.0.1', port, agent, headers: { user } }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`HTTP ${response.statusCode}`))
      response.resume().on('end', resolve)
    })
    request.on('error', reject)
  })
}

async function serve(url) {
  const store = new RedisStore(new Redis(url))
  await store.ready()
  const app = express()
  app.use(
    rateLimit({ store, limit: 1000, window: '1h', timeoutMs: 10_000, key: (request) => request.get('user') }),
  )
  app.get('/', (_request, response) => response.send('ok'))
  const server = app.listen(0, '127.0.0.1', () => process.send(server.address().port))
}
