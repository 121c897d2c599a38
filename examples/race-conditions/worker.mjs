// One server process of the example: opens a strategy, waits for its parent's word, and sends its requests at once.
import { Redis } from 'ioredis'
import { strategies } from './strategies.mjs'

const { strategy, limit, key, requests, url, keyPrefix, dies } = JSON.parse(process.argv[2])
const client = new Redis(url, { keyPrefix })
const afterWrite = dies ? () => process.kill(process.pid, 'SIGKILL') : () => {}
const consume = strategies[strategy]({ client, limit, afterWrite })

await client.ping()
process.send('ready')
await new Promise((resolve) => process.once('message', resolve))

const answers = await Promise.all(Array.from({ length: requests }, () => consume(key)))
process.send({
  allowed: answers.filter((answer) => answer.allowed).length,
  retries: answers.reduce((sum, answer) => sum + answer.retries, 0),
})
