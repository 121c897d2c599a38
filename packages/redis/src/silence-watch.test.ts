import { EventEmitter } from 'node:events'
import type { Redis } from 'ioredis'
import { SilenceWatch } from './silence-watch.js'

class Socket extends EventEmitter {
  destroyed = false
  bytesRead = 0
  destroy = jest.fn(() => {
    this.destroyed = true
  })
}

describe('a watch over connections', () => {
  let stream: Socket
  let connection: { stream: Socket | undefined; commandQueue: { length: number } }
  let watch: SilenceWatch
  beforeEach(() => {
    jest.useFakeTimers()
    stream = new Socket()
    connection = { stream, commandQueue: { length: 1 } }
    watch = new SilenceWatch(() => [connection as unknown as Redis])
  })
  afterEach(() => {
    watch.stop()
    jest.useRealTimers()
  })

  test('ends one that owes a reply and is silent for a second', () => {
    jest.advanceTimersByTime(1000)
    expect(stream.destroy).toHaveBeenCalledTimes(1)
    jest.advanceTimersByTime(5000)
    expect(stream.destroy).toHaveBeenCalledTimes(1)
  })

  test('leaves one that owes nothing', () => {
    connection.commandQueue.length = 0
    jest.advanceTimersByTime(60_000)
    connection.commandQueue.length = 1
    jest.advanceTimersByTime(500)
    expect(stream.destroy).not.toHaveBeenCalled()
  })

  test('leaves one from which something comes now and then', () => {
    for (let i = 0; i < 20; i++) {
      jest.advanceTimersByTime(700)
      stream.bytesRead += 1
    }
    expect(stream.destroy).not.toHaveBeenCalled()
  })

  test('gives a new socket of the same connection its own time', () => {
    jest.advanceTimersByTime(750)
    connection.stream = undefined
    jest.advanceTimersByTime(250)
    const next = new Socket()
    connection.stream = next
    jest.advanceTimersByTime(750)
    expect(next.destroy).not.toHaveBeenCalled()
    jest.advanceTimersByTime(250)
    expect(next.destroy).toHaveBeenCalledTimes(1)
  })

  test('that has stopped ends nothing', () => {
    watch.stop()
    jest.advanceTimersByTime(60_000)
    expect(stream.destroy).not.toHaveBeenCalled()
  })
})
