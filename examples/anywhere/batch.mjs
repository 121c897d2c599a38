// An endpoint that takes rows in batches: 100 rows a minute for a user, each batch as a whole or not at all.
//   node examples/anywhere/batch.mjs
//   curl -i -H 'authorization: Bearer demo-ann' -d '["a","b","c"]' http://127.0.0.1:3000
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { httpReply, Limiter } from '@sluice/core'

const users = { 'Bearer demo-ann': 'ann', 'Bearer demo-bob': 'bob' }
const maxBytes = 100_000

const limiter = new Limiter({ name: 'rows', limit: 100, window: '1m' })

const server = createServer(async (req, res) => {
  const { authorization } = req.headers
  if (!Object.hasOwn(users, authorization)) return res.writeHead(401).end()
  if (!(Number(req.headers['content-length']) <= maxBytes)) return res.writeHead(413).end()
  const rows = await json(req).catch(() => undefined)
  if (!Array.isArray(rows)) return res.writeHead(400).end()

  const decision = await limiter.consume({ key: `user:${users[authorization]}`, cost: rows.length })
  // More rows than the limit can ever admit: no wait helps, a smaller batch does.
  const statusCode = decision.reason === 'cost' ? 413 : 429
  const { status, headers, body } = httpReply(decision, { statusCode, accept: req.headers.accept })
  if (status) return res.writeHead(status, headers).end(body)
  res.writeHead(200, { ...headers, 'Content-Type': 'application/json' })
  res.end(JSON.stringify({ stored: rows.length, remaining: decision.remaining }))
})

server.listen(process.env.PORT ?? 3000, '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`)
})
