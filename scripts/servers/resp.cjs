// Talks to servers in plain RESP, over a connection of its own for each call: no client's retries come in between.
const net = require('node:net')
const tls = require('node:tls')

/** @typedef {string | number | null | Error | unknown[]} Reply a server's answer, one that is an error as an Error */

/** @param {string[]} words */
const encode = (words) =>
  `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`

/**
 * Reads the reply that starts at an offset of a text with one character per byte: undefined while it is incomplete.
 * @param {string} text
 * @param {number} at
 * @returns {{ value: Reply, end: number } | undefined}
 */
function read(text, at) {
  const lineEnd = text.indexOf('\r\n', at)
  if (lineEnd === -1) return undefined
  const line = text.slice(at + 1, lineEnd)
  const next = lineEnd + 2
  switch (text[at]) {
    case '+':
      return { value: line, end: next }
    case '-':
      return { value: new Error(line), end: next }
    case ':':
      return { value: Number(line), end: next }
    case '$': {
      if (line === '-1') return { value: null, end: next }
      const end = next + Number(line)
      if (text.length < end + 2) return undefined
      return { value: Buffer.from(text.slice(next, end), 'latin1').toString(), end: end + 2 }
    }
    case '*':
      return line === '-1' ? { value: null, end: next } : readMany(text, next, Number(line))
    default:
      throw new Error('what answers there is not Redis')
  }
}

/**
 * @param {string} text
 * @param {number} at
 * @param {number} count
 * @returns {{ value: Reply[], end: number } | undefined}
 */
function readMany(text, at, count) {
  const value = []
  let end = at
  while (value.length < count) {
    const item = read(text, end)
    if (!item) return undefined
    value.push(item.value)
    end = item.end
  }
  return { value, end }
}

/**
 * Sends commands to the server behind a `redis://` or `rediss://` URL and resolves to their replies.
 * @param {string} url
 * @param {string[][]} commands
 * @param {number} timeoutMs
 * @returns {Promise<Reply[]>}
 */
function ask(url, commands, timeoutMs) {
  const { hostname, port, protocol } = new URL(url)
  const to = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 6379) }
  return new Promise((resolve, reject) => {
    const socket = protocol === 'rediss:' ? tls.connect(to) : net.connect(to)
    const deadline = setTimeout(() => fail(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs)
    const end = () => {
      clearTimeout(deadline)
      socket.destroy()
    }
    const fail = (/** @type {Error} */ why) => {
      end()
      reject(why)
    }
    let text = ''
    socket.setEncoding('latin1')
    socket.on('error', (/** @type {NodeJS.ErrnoException} */ error) =>
      fail(new Error(error.message || `${error.code}`)),
    )
    socket.on('close', () => fail(new Error('the connection was closed')))
    socket.on('data', (chunk) => {
      text += chunk
      try {
        const replies = readMany(text, 0, commands.length)
        if (!replies) return
        end()
        resolve(replies.value)
      } catch (error) {
        fail(/** @type {Error} */ (error))
      }
    })
    socket.write(commands.map(encode).join(''))
  })
}

/**
 * Sends one command to a server on 127.0.0.1 and resolves to its reply; rejects with the server's error.
 * @param {number} port
 * @param {(string | number)[]} words
 */
async function call(port, ...words) {
  const [reply] = await ask(`redis://127.0.0.1:${port}`, [words.map(String)], 5000)
  if (reply instanceof Error) throw reply
  return reply
}

module.exports = { ask, call }
