import { type ChildProcess, fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'

interface Run {
  readonly startedMs: number
  readonly departsMs: number
  readonly delayMs: number
}

const processes = 4
const queue = 23
const everyMs = 50

let workers: ChildProcess[] = []

afterEach(async () => {
  for (const worker of workers.splice(0)) {
    const gone = once(worker, 'exit')
    worker.disconnect()
    await gone
  }
})

/** Sends requests to every process at once, and tells the runs of the handler and the denied. */
async function flood(requestsEach: number): Promise<{ runs: Run[]; denied: number }> {
  const policy = { limit: 1000 / everyMs, window: '1s', queue }
  const task = { url: process.env.REDIS_URL, keyPrefix: `test:${randomUUID()}:`, policy }
  workers = Array.from({ length: processes }, () =>
    fork(join(__dirname, 'queue-worker.mjs'), [JSON.stringify(task)]),
  )
  const ports = await Promise.all(workers.map(async (worker) => (await once(worker, 'message'))[0] as number))
  const ask = (i: number, key: string): Promise<Response> =>
    fetch(`http://127.0.0.1:${ports[i % processes]}/?key=${key}`)
  // Code that runs for the first time is slow, and would hold a handler up for longer than the gap.
  for (let i = 0; i < 20 * processes; i++) await ask(i, `warm-up-${i}`)
  const answers = await Promise.all(
    Array.from({ length: processes * requestsEach }, (_, i) => ask(i, 'shared')),
  )
  const allowed = answers.filter(({ status }) => status === 200)
  const runs = (await Promise.all(allowed.map((answer) => answer.json()))) as Run[]
  return { runs, denied: answers.filter(({ status }) => status === 429).length }
}

describe(`${processes} processes with one leaky bucket, a departure every ${everyMs} ms`, () => {
  // A process that the machine holds up for longer than the gap between departures can fall behind another.
  jest.retryTimes(3)

  test('start their handlers in the order of the scheduled departures, and queue no more than the places', async () => {
    const { runs, denied } = await flood(12)
    expect(runs.length + denied).toBe(processes * 12)
    // Places, the one departing, and those that departed while the requests came in.
    const firstMs = Math.min(...runs.map(({ departsMs, delayMs }) => departsMs - delayMs))
    const lastMs = Math.max(...runs.map(({ departsMs, delayMs }) => departsMs - delayMs))
    expect(runs.length).toBeGreaterThanOrEqual(queue + 1)
    expect(runs.length).toBeLessThanOrEqual(queue + 2 + Math.ceil((lastMs - firstMs) / everyMs))
    expect(Math.max(...runs.map(({ delayMs }) => delayMs))).toBeLessThanOrEqual(queue * everyMs)

    const byDeparture = [...runs].sort((a, b) => a.departsMs - b.departsMs)
    for (const [i, run] of byDeparture.entries()) {
      if (i > 0)
        expect(run.departsMs - (byDeparture[i - 1] as Run).departsMs).toBeGreaterThanOrEqual(everyMs - 1)
    }
    const byStart = [...runs].sort((a, b) => a.startedMs - b.startedMs)
    expect(byStart.map(({ departsMs }) => departsMs)).toEqual(byDeparture.map(({ departsMs }) => departsMs))
  })
})
