import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { launchAll, until } from './launch.cjs'
import { findRedisServer, ping, serverBinary, startRedis } from './redis.cjs'
import { call } from './resp.cjs'

it('starts the server it finds, on the port it is given', async () => {
  const first = await startRedis({ args: ['--maxmemory', '7mb'] })
  await expect(call(first.port, 'CONFIG', 'GET', 'maxmemory')).resolves.toEqual(['maxmemory', '7340032'])
  await expect(startRedis({ port: first.port })).rejects.toThrow(`Port ${first.port} is taken.`)
  await first.stop()
  const second = await startRedis({ port: first.port, binary: serverBinary() })
  expect(second).toMatchObject({ port: first.port, url: first.url })
  await second.stop()
  expect(findRedisServer()).toEqual({ kind: 'binary', path: serverBinary() })
})

it.each([
  ['a server that is no Redis', { binary: '/bin/false' }, '/bin/false'],
  ['a server that is not there', { binary: '/nowhere/redis-server' }, '/nowhere/redis-server'],
  ['an argument that the server does not know', { args: ['--nonsense', '1'] }, 'nonsense'],
])('tells what did not start: %s', async (_, options, named) => {
  await expect(startRedis(options)).rejects.toThrow(named)
})

it('leaves no server when one of several does not start', async () => {
  const { port, stop } = await startRedis()
  await stop()
  const binary = serverBinary()
  await expect(launchAll([{ binary, port }, { binary: '/bin/false' }])).rejects.toThrow('/bin/false')
  await expect(call(port, 'PING')).rejects.toThrow('ECONNREFUSED')
})

it('stops with the process that started it, though that is killed', async () => {
  const program = `require(${JSON.stringify(join(__dirname, 'redis.cjs'))}).startRedis().then(({ port }) => {
    console.log(port)
    setInterval(() => {}, 1000)
  })`
  const folder = mkdtempSync(join(tmpdir(), 'sluice-test-'))
  const env = { ...process.env, TMPDIR: folder }
  const parent = spawn(process.execPath, ['-e', program], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = await once(parent.stdout, 'data')
  const port = Number(line)
  await expect(call(port, 'PING')).resolves.toBe('PONG')
  parent.kill('SIGKILL')
  await until('the server is gone', () =>
    call(port, 'PING').then(
      () => false,
      ({ message }) => /ECONNREFUSED/.test(message),
    ),
  )
  rmSync(folder, { recursive: true })
})

describe('ping', () => {
  it('logs in, and tells why it may not', async () => {
    const { url, stop } = await startRedis({ args: ['--requirepass', 'secret word'] })
    try {
      await expect(ping(url.replace('//', '//:secret%20word@'))).resolves.toBeUndefined()
      await expect(ping(url.replace('//', '//:wrong@'))).rejects.toThrow('the server answered WRONGPASS')
      await expect(ping(url)).rejects.toThrow('the server answered NOAUTH')
    } finally {
      await stop()
    }
    await expect(ping(url)).rejects.toThrow('ECONNREFUSED')
  })

  it('tells that what answers is not Redis', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    await expect(ping(`redis://127.0.0.1:${port}`)).rejects.toThrow('what answers there is not Redis')
    server.close()
  })

  it('waits no longer than it is told', async () => {
    const { url, pid, stop } = await startRedis()
    process.kill(pid, 'SIGSTOP')
    await expect(ping(url, 50)).rejects.toThrow('no answer within 50 ms')
    await stop()
  })
})
