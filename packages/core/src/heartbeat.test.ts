import { pass } from '../test/leasing.js'
import { SharedStore } from '../test/shared-store.js'
import { Heartbeat } from './heartbeat.js'

let store: SharedStore
beforeEach(() => {
  jest.useFakeTimers({ now: 1_800_000_000_000 })
  store = new SharedStore()
})
afterEach(() => {
  jest.useRealTimers()
})

const processes = (count: number, name = 'api'): Heartbeat[] =>
  Array.from({ length: count }, () => new Heartbeat(store, name))

/** Each decides every 300 ms for a while; `seen` hears what each counts. */
async function decide(
  heartbeats: readonly Heartbeat[],
  ms: number,
  seen: (heartbeat: Heartbeat) => void = () => {},
): Promise<void> {
  for (let passed = 0; passed < ms; passed += 300) {
    for (const heartbeat of heartbeats) heartbeat.beat({ timeoutMs: 100 })
    await pass(300)
    heartbeats.forEach(seen)
  }
}

const counts = (heartbeats: readonly Heartbeat[]) => heartbeats.map(({ nodes }) => nodes)

test('knows nothing before the store has told', () => {
  expect(processes(1)).toMatchObject([{ nodes: undefined, settledNodes: undefined }])
})

test.each([1, 3, 20])(
  'counts %d processes, each of itself and the others, at any moment of a minute',
  async (count) => {
    const heartbeats = processes(count)
    // Each reads at times of its own.
    for (let begun = 1; begun <= count; begun++) await decide(heartbeats.slice(0, begun), 300)
    await decide(heartbeats, 6000)
    const seen: number[] = []
    await decide(heartbeats, 60_000, ({ settledNodes }) => seen.push(settledNodes ?? 0))
    expect(Math.min(...seen)).toBe(count)
    // One that counts itself again is seen twice by who reads at that moment.
    expect(Math.max(...seen)).toBeLessThanOrEqual(count + (count - 1) * 0.2)
  },
)

test('asks the store about once in 2.5 s', async () => {
  const [heartbeat] = processes(1) as [Heartbeat]
  await decide([heartbeat], 60_000)
  // And once more in 7.5 s, to count itself again.
  expect(store.sent('consume')).toBeLessThanOrEqual(24 + 8)
})

test('counts a new process at once, and is told of as settled only when the others had time to read it', async () => {
  const old = processes(2)
  await decide(old, 6000)
  const [young] = processes(1) as [Heartbeat]
  await decide([young, ...old], 300)
  expect(young).toMatchObject({ nodes: 3, settledNodes: undefined })
  while (young.settledNodes === undefined) await decide([young, ...old], 300)
  expect(counts(old)).toEqual([3, 3])
})

test('forgets a process that is heard of no more after ten seconds, and one that closes at once', async () => {
  const heartbeats = processes(4)
  await decide(heartbeats, 3000)
  const [closing, ...left] = heartbeats as [Heartbeat, ...Heartbeat[]]
  await closing.close()
  await decide(left, 3000)
  expect(counts(left)).toEqual([3, 3, 3])
  const staying = left.slice(1)
  await decide(staying, 15_000)
  expect(counts(staying)).toEqual([2, 2])
})

test('a process that was silent counts as new again', async () => {
  const [heartbeat] = processes(1) as [Heartbeat]
  await decide([heartbeat], 6000)
  expect(heartbeat.settledNodes).toBe(1)
  await pass(60_000)
  await decide([heartbeat], 300)
  expect(heartbeat).toMatchObject({ nodes: 1, settledNodes: undefined })
})

test('a close waits for what is on its way, and takes it out too', async () => {
  const [closing, staying] = processes(2) as [Heartbeat, Heartbeat]
  store.backMs = () => 50
  closing.beat({ timeoutMs: 100 })
  void closing.close()
  await pass(200)
  await decide([staying], 300)
  expect(staying.nodes).toBe(1)
})

test('limiters of other names are not counted', async () => {
  const [one, other] = [processes(2), processes(1, 'other')]
  await decide([...one, ...other], 3000)
  expect(counts([...one, ...other])).toEqual([2, 2, 1])
})

test('a store that fails changes nothing and throws nothing, and is asked again', async () => {
  const heartbeats = processes(2)
  store.fails = () => true
  await decide(heartbeats, 3000)
  expect(counts(heartbeats)).toEqual([undefined, undefined])
  store.fails = () => false
  await decide(heartbeats, 6000)
  expect(counts(heartbeats)).toEqual([2, 2])
  store.fails = () => true
  await decide(heartbeats, 6000)
  await heartbeats[0]?.close()
  expect(counts(heartbeats)).toEqual([2, 2])
})
