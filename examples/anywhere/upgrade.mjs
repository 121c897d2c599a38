// Connections that begin as an HTTP upgrade, as WebSockets do: 3 a minute from an address. One that is denied gets the
// reply that a middleware would send, written to its socket.
//   node examples/anywhere/upgrade.mjs
//   curl -i -H 'connection: upgrade' -H 'upgrade: echo' http://127.0.0.1:3000
import { createServer, STATUS_CODES } from 'node:http'
import { byIp, httpReply, Limiter } from '@sluice/core'

const limiter = new Limiter({ name: 'upgrades', limit: 3, window: '1m' })

const server = createServer((_req, res) => res.writeHead(426, { Upgrade: 'echo' }).end())

server.on('upgrade', async (req, socket) => {
  socket.on('error', () => {}) // it is gone: there is nobody to tell
  const decision = await limiter.consume({ key: byIp.of(req.socket.remoteAddress) })
  const { status, headers, body } = httpReply(decision, { accept: req.headers.accept })
  if (status) return socket.end(`${headOf(status, { ...headers, Connection: 'close' })}${body}`)
  socket.write(headOf(101, { ...headers, Connection: 'Upgrade', Upgrade: 'echo' }))
  socket.pipe(socket)
})

function headOf(status, headers) {
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${fields.join('')}\r\n`
}

server.listen(process.env.PORT ?? 3000, '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`)
})
