import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { until } from './launch.cjs'
import { type RedisServer, startRedis } from './redis.cjs'
import { call } from './resp.cjs'
import { startProxy } from './tcp-proxy.cjs'

type Proxy = Awaited<ReturnType<typeof startProxy>>

let redis: RedisServer
let proxy: Proxy
let client: Client
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis?.stop())
beforeEach(async () => {
  await call(redis.port, 'FLUSHALL')
  proxy = await startProxy(redis.port)
  client = await openClient()
})
afterEach(async () => {
  client.socket.destroy()
  await proxy.stop()
})

interface Client {
  socket: Socket
  /** All that has come. */
  text: () => string
  /** The code of the error that ended the connection, `closed` if it ended without. */
  end: Promise<string>
}

async function openClient(port = proxy.port): Promise<Client> {
  const socket = connect(port, '127.0.0.1')
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk
  })
  const end = new Promise<string>((resolve) => {
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(`${error.code}`))
    socket.on('close', () => resolve('closed'))
  })
  await once(socket, 'connect')
  return { socket, text: () => text, end }
}

const sent = ({ socket }: Client, request: string) =>
  new Promise<void>((resolve) => {
    socket.write(request, () => resolve())
  })

const received = ({ text }: Client, what: string) => until(what, async () => text().includes(what))

const becomes = (value: string) =>
  until(`k is ${value}`, async () => (await call(redis.port, 'GET', 'k')) === value)

it('passes requests and replies on, and the end of a connection', async () => {
  client.socket.write('INCR k\r\nINCR k\r\n')
  await received(client, ':1\r\n:2\r\n')
  client.socket.write('QUIT\r\n')
  await expect(client.end).resolves.toBe('closed')
})

it('refuses: resets the connections there are, and new ones', async () => {
  client.socket.write('INCR k\r\n')
  await received(client, ':1')
  proxy.refuse()
  await expect(client.end).resolves.toBe('ECONNRESET')
  await expect(call(proxy.port, 'PING')).rejects.toThrow(/ECONNRESET|closed/)
  proxy.pass()
  await expect(call(proxy.port, 'PING')).resolves.toBe('PONG')
})

it('ends a connection whose server dies, and makes one again when that is back', async () => {
  const mortal = await startRedis()
  const { port, stop } = await startProxy(mortal.port)
  const mourner = await openClient(port)
  await sent(mourner, 'PING\r\n')
  await received(mourner, '+PONG')
  await mortal.stop()
  await mourner.end
  await expect(call(port, 'PING')).rejects.toThrow(/ECONNRESET|closed/)
  const reborn = await startRedis({ port: mortal.port })
  await expect(call(port, 'PING')).resolves.toBe('PONG')
  await stop()
  await reborn.stop()
})

it('holds requests, new connections and those of a client that has left too, and loses none', async () => {
  proxy.hold()
  const late = await openClient()
  const gone = await openClient()
  for (const each of [client, late, gone]) await sent(each, 'INCR k\r\n')
  gone.socket.destroy()
  await call(redis.port, 'SET', 'k', 10)
  expect(await call(redis.port, 'GET', 'k')).toBe('10')
  proxy.pass()
  await becomes('13')
  await received(client, ':1')
  late.socket.destroy()
})

it('holds replies whose requests were delivered', async () => {
  client.socket.write('BLPOP list 0\r\n')
  const waits = async () => `${await call(redis.port, 'INFO', 'clients')}`.includes('blocked_clients:1')
  await until('the client waits', waits)
  proxy.hold()
  await call(redis.port, 'RPUSH', 'list', 'item')
  expect(await call(redis.port, 'LLEN', 'list')).toBe(0)
  expect(client.text()).toBe('')
  proxy.pass()
  await received(client, 'item')
})

it('delivers what was held when it refuses next, and keeps the reply', async () => {
  proxy.hold()
  await sent(client, 'INCR k\r\n')
  await call(redis.port, 'SET', 'k', 10)
  proxy.refuse()
  await becomes('11')
  await expect(client.end).resolves.toBe('ECONNRESET')
  expect(client.text()).toBe('')
})

it('leaves no connection open when it refuses one that the server has ended', async () => {
  await sent(client, 'PING\r\n')
  await received(client, '+PONG')
  proxy.hold()
  await call(redis.port, 'CLIENT', 'KILL', 'TYPE', 'normal')
  await call(redis.port, 'PING')
  proxy.refuse()
  await client.end
  await until('all is closed', async () => !process.getActiveResourcesInfo().includes('TCPSocketWrap'))
})

it('delays', async () => {
  proxy.delay(100)
  await sent(client, 'SET k late\r\n')
  await call(redis.port, 'SET', 'k', 'early')
  await becomes('late')
  await received(client, '+OK')
})

it('keeps the order of what it delays unevenly', async () => {
  proxy.delay(0, 20)
  const numbers = Array.from({ length: 20 }, (_, index) => `${index + 1}`)
  for (const number of numbers) await sent(client, `RPUSH list ${number}\r\n`)
  await received(client, numbers.map((number) => `:${number}\r\n`).join(''))
  expect(await call(redis.port, 'LRANGE', 'list', 0, -1)).toEqual(numbers)
})

it('delivers at once what was delayed when it passes next', async () => {
  proxy.delay(3_600_000)
  await sent(client, 'INCR k\r\n')
  await call(redis.port, 'SET', 'k', 10)
  proxy.pass()
  await becomes('11')
  await received(client, ':1')
})

it('cuts the connection when the reply comes, so that the request has been served', async () => {
  proxy.cutReplies()
  client.socket.write('INCR k\r\n')
  await expect(client.end).resolves.toBe('ECONNRESET')
  expect(client.text()).toBe('')
  expect(await call(redis.port, 'GET', 'k')).toBe('1')
})

it('cuts in the middle of a reply', async () => {
  proxy.cutReplies({ half: true })
  client.socket.write(`ECHO ${'e'.repeat(90)}\r\n`)
  await client.end
  expect(client.text()).toBe(`$90\r\n${'e'.repeat(90)}\r\n`.slice(0, 48))
})

it('cuts only the replies it is told to', async () => {
  proxy.cutReplies({ to: /incr/i })
  client.socket.write('SET k 5\r\n')
  await received(client, '+OK')
  client.socket.write('INCR k\r\n')
  await expect(client.end).resolves.toBe('ECONNRESET')
  expect(client.text()).toBe('+OK\r\n')
  expect(await call(redis.port, 'GET', 'k')).toBe('6')
})

it('resets its connections when it stops, and may be stopped again', async () => {
  await proxy.stop()
  await expect(client.end).resolves.toBe('ECONNRESET')
  await expect(call(proxy.port, 'PING')).rejects.toThrow('ECONNREFUSED')
  await proxy.stop()
})
