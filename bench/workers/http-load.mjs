// Sends requests over raw sockets, so that the generator costs less than what it measures. Takes messages of
// { port, connections, ms or total, rate, paths } and answers each with what came back. Requests ask for the `paths` in
// turn; a run lasts for `ms` or until `total` were answered. Each connection is a client with an address of its own.
import { connect } from 'node:net'

const requestFor = (path) =>
  Buffer.from(
    `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: sluice-bench\r\nAccept: */*\r\nAccept-Encoding: gzip\r\nConnection: keep-alive\r\n\r\n`,
  )

/** What is sent, in turn. */
let requests = []
let sentCount = 0

class Connection {
  #socket
  #text = ''
  #rest = 0
  #onReply

  constructor(port, localAddress) {
    this.#socket = connect({ port, host: '127.0.0.1', localAddress, noDelay: true })
    this.#socket.setEncoding('latin1')
    this.#socket.on('data', (chunk) => this.#read(chunk))
    this.#socket.on('error', (error) => {
      throw error
    })
    this.opened = new Promise((resolve) => this.#socket.once('connect', resolve))
  }

  send(onReply) {
    this.#onReply = onReply
    this.#socket.write(requests[sentCount++ % requests.length])
  }

  close() {
    this.#socket.destroy()
  }

  #read(chunk) {
    if (this.#rest > 0) {
      this.#rest -= chunk.length
    } else {
      this.#text += chunk
      const end = this.#text.indexOf('\r\n\r\n')
      if (end < 0) return
      const at = this.#text.search(/content-length: /i)
      this.#rest = Number.parseInt(this.#text.slice(at + 16, at + 24), 10) - (this.#text.length - end - 4)
    }
    if (this.#rest > 0) return
    const status = this.#text.slice(9, 12)
    this.#text = ''
    this.#onReply(status)
  }
}

/** Each connection sends its next request when the last was answered, for so long or until so many were sent. */
async function closedLoop(connections, { ms = Number.POSITIVE_INFINITY, total = Number.POSITIVE_INFINITY }) {
  const counts = {}
  const start = performance.now()
  const end = start + ms
  let sent = 0
  await Promise.all(
    connections.map(
      (connection) =>
        new Promise((resolve) => {
          const next = (status) => {
            if (status) counts[status] = (counts[status] ?? 0) + 1
            if (sent++ < total && performance.now() < end) connection.send(next)
            else resolve()
          }
          next()
        }),
    ),
  )
  return { counts, ms: performance.now() - start }
}

/** Requests come `rate` a second, whether or not earlier ones were answered; their times count from when they were due. */
function openLoop(connections, { ms, rate, total = Math.floor((rate * ms) / 1000) }) {
  const counts = {}
  const times = []
  const idle = [...connections]
  const due = []
  const start = performance.now()
  let sent = 0
  return new Promise((resolve) => {
    const dispatch = () => {
      while (due.length > 0 && idle.length > 0) {
        const at = due.shift()
        const connection = idle.pop()
        connection.send((status) => {
          counts[status] = (counts[status] ?? 0) + 1
          times.push(performance.now() - at)
          idle.push(connection)
          if (times.length === total) resolve({ counts, ms: performance.now() - start, times })
          else dispatch()
        })
      }
    }
    const tick = () => {
      const now = performance.now() - start
      for (; sent < total && (sent * 1000) / rate <= now; sent++) due.push(start + (sent * 1000) / rate)
      dispatch()
      if (sent < total) setTimeout(tick, 1)
    }
    tick()
  })
}

const quantile = (sorted, q) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))]

process.on('disconnect', () => process.exit())
process.on('message', async ({ port, connections: count, paths, ...run }) => {
  requests = paths.map(requestFor)
  const connections = Array.from({ length: count }, (_, i) => new Connection(port, `127.0.1.${1 + i}`))
  await Promise.all(connections.map(({ opened }) => opened))
  const {
    counts,
    ms,
    times = [],
  } = await (run.rate ? openLoop(connections, run) : closedLoop(connections, run))
  for (const connection of connections) connection.close()
  times.sort((a, b) => a - b)
  const answered = Object.values(counts).reduce((sum, n) => sum + n, 0)
  process.send({ counts, requests: answered, ms, p50: quantile(times, 0.5), p99: quantile(times, 0.99) })
})
