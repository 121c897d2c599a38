// Messages over plain sockets, each a line of JSON: 5 in 10 seconds for a user, over all connections of theirs.
//   node examples/anywhere/messages.mjs
//   printf '{"token":"demo-ann"}\n{"text":"hello"}\n' | nc 127.0.0.1 3000
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { Limiter } from '@sluice/core'

const users = { 'demo-ann': 'ann', 'demo-bob': 'bob' }
const maxRefusals = 10

const limiter = new Limiter({ name: 'messages', algorithm: 'token-bucket', limit: 5, window: '10s' })

const server = createServer(async (socket) => {
  socket.on('error', () => {}) // it is gone: there is nobody to tell
  const reply = (message) => socket.write(`${JSON.stringify(message)}\n`)
  let user
  let refusals = 0
  for await (const line of createInterface({ input: socket })) {
    const message = parse(line)
    if (!user) {
      user = Object.hasOwn(users, message?.token) ? users[message.token] : undefined
      if (!user) break
      continue
    }
    const { allowed, retryAfterMs } = await limiter.consume({ key: `user:${user}` })
    if (allowed) {
      refusals = 0
      reply({ accepted: message?.text })
    } else {
      refusals += 1
      reply({ denied: message?.text, retryAfterMs })
      if (refusals === maxRefusals) break // it was told when to come back, and does not listen
    }
  }
  socket.end()
})

function parse(line) {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

server.listen(process.env.PORT ?? 3000, '127.0.0.1', () => {
  console.log(`listening on tcp://127.0.0.1:${server.address().port}`)
})
