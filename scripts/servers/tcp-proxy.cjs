// A TCP proxy on 127.0.0.1 that plays the faults of a network, for tests.
const { once } = require('node:events')
const net = require('node:net')

/** @typedef {import('node:net').Socket} Socket */

/**
 * Resets a connection. Once its end has begun it can no longer be reset, and the attempt would leave it open.
 * @param {Socket} socket
 */
function resetSocket(socket) {
  if (socket.writableEnded) socket.destroy()
  else socket.resetAndDestroy()
}

/**
 * @typedef {object} Mode
 * @property {boolean} [refuse]
 * @property {boolean} [hold]
 * @property {() => number} [delay] how many milliseconds later what has just come is to be passed on
 * @property {{ half: boolean, to: RegExp }} [cut]
 */

/**
 * Starts a proxy in front of a server on 127.0.0.1. It begins by passing all on; a switch takes effect at once, for
 * live connections too. Nothing is ever lost in between, as TCP loses nothing: a connection delivers or breaks.
 * @param {number} targetPort
 */
async function startProxy(targetPort) {
  /** @type {Set<ReturnType<typeof link>>} */
  const links = new Set()
  /** @type {Mode} */
  let mode = {}
  const server = net.createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    if (mode.refuse) {
      resetSocket(client)
      return
    }
    const target = net.connect({ port: targetPort, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
    const made = link(client, target, () => mode)
    links.add(made)
    for (const socket of [client, target])
      socket.on('close', () => {
        if (client.destroyed && target.destroyed) links.delete(made)
      })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())

  const turn = (/** @type {Mode} */ to) => {
    mode = to
    for (const each of links) each.turned()
  }
  const reset = () => {
    for (const each of links) each.reset()
  }

  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    /** Passes all on, first what was held. */
    pass: () => turn({}),
    /** Resets all connections, after passing on what was held, and new ones as soon as they are made. */
    refuse: () => {
      turn({ refuse: true })
      reset()
    },
    /** Accepts connections and keeps what comes from both sides, also from one that then leaves, for the next mode. */
    hold: () => turn({ hold: true }),
    /**
     * Passes everything on later, in order.
     * @param {number} ms
     * @param {number} [jitterMs] up to this much is added to `ms`, evenly distributed
     */
    delay: (ms, jitterMs = 0) => turn({ delay: () => ms + Math.random() * jitterMs }),
    /**
     * Resets a connection when the server replies, so that what was asked has been done and the client cannot know.
     * @param {object} [options]
     * @param {boolean} [options.half] passes the first half of the reply's bytes on before; the client then sees an end or a reset
     * @param {RegExp} [options.to] only replies to requests that match, such as /evalsha/i; others pass
     */
    cutReplies: ({ half = false, to = /^/ } = {}) => turn({ cut: { half, to } }),
    /** Resets all connections and stops. */
    stop: async () => {
      if (!server.listening) return
      server.close()
      reset()
      await once(server, 'close')
    },
  }
}

/**
 * Joins a client and the server.
 * @param {Socket} client
 * @param {Socket} target
 * @param {() => Mode} mode
 */
function link(client, target, mode) {
  let matched = false
  let ended = false
  const reset = () => {
    resetSocket(client)
    target.destroy()
  }
  const requests = lane(client, target, mode, (chunk) => {
    if (mode().cut?.to.test(chunk.toString('latin1'))) matched = true
    target.write(chunk)
  })
  const replies = lane(target, client, mode, (chunk) => {
    const { cut } = mode()
    if (ended) return
    if (cut && matched) {
      ended = true
      client.write(chunk.subarray(0, cut.half ? chunk.length / 2 : 0), reset)
    } else client.write(chunk)
  })
  const turned = () => {
    requests()
    replies()
  }
  return { turned, reset }
}

/**
 * Passes on what comes from one side, its end and its failure included, when the mode wants it to be.
 * @param {Socket} from
 * @param {Socket} to
 * @param {() => Mode} mode
 * @param {(chunk: Buffer) => void} pass
 * @returns {() => void} to be called when the mode has changed
 */
function lane(from, to, mode, pass) {
  /** @type {{ due: number, deliver: () => void }[]} */
  const queue = []
  /** @type {NodeJS.Timeout | undefined} */
  let timer
  const due = () => performance.now() + (mode().delay?.() ?? 0)
  const flow = () => {
    clearTimeout(timer)
    while (queue[0] && !mode().hold) {
      const wait = queue[0].due - performance.now()
      if (wait > 0) {
        timer = setTimeout(flow, wait)
        return
      }
      queue.shift()?.deliver()
    }
  }
  const put = (/** @type {() => void} */ deliver) => {
    queue.push({ due: due(), deliver })
    flow()
  }
  from.on('data', (chunk) => put(() => pass(chunk)))
  from.on('end', () => put(() => to.end()))
  // Reset once all that came before is out.
  from.on('error', () => put(() => to.write('', () => resetSocket(to))))
  return () => {
    for (const item of queue) item.due = due()
    flow()
  }
}

module.exports = { startProxy }
