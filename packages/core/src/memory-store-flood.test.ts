import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { manualClock } from '../test/manual-clock.js'
import { algorithmNames } from './algorithms/index.js'
import { MemoryStore } from './memory-store.js'
import { resolvePolicy } from './policy.js'
import type { Check, Verdict } from './store.js'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

function heapBytes(): number {
  collectGarbage()
  return process.memoryUsage().heapUsed
}

const visitor = resolvePolicy({ algorithm: 'fixed-window', limit: 10, window: '1m' })

/** Sends one request from each of some clients that were never here before. */
async function flood(store: MemoryStore, clients: number): Promise<void> {
  const random = (): Check => ({ key: `${Math.random()}`, policy: visitor, least: 1, most: 1 })
  for (let i = 0; i < clients; i++) await store.consume([random()])
}

describe('a flood of clients that come once each', () => {
  test('of a million leaves maxKeys of them, and exhausted keys exhausted, under every algorithm B158 B160', async () => {
    const store = new MemoryStore({ nowUs: manualClock().nowUs })
    const exhausting = algorithmNames.flatMap((algorithm) => {
      const policy = resolvePolicy({ algorithm, limit: 10, window: '1m' })
      const { burst } = policy
      return ['a', 'b', 'c'].map(
        (key): Check => ({ key: `${algorithm} ${key}`, policy, least: burst, most: burst }),
      )
    })
    for (const check of exhausting) expect(await store.consume([check])).toMatchObject([{ remaining: 0 }])
    await flood(store, 1_000_000)
    expect(store.size).toBe(100_000)
    const left = await store.peek(exhausting.map((check) => ({ ...check, least: 1, most: 1 })))
    expect(left.filter(({ allowed }: Verdict) => allowed)).toEqual([])
  }, 120_000)

  test('keeps the heap flat over ten rounds, each two windows after the one before B158', async () => {
    const clock = manualClock()
    const store = new MemoryStore({ maxKeys: 10_000, nowUs: clock.nowUs })
    const heaps: number[] = []
    for (let round = 0; round < 10; round++) {
      await flood(store, 15_000)
      clock.advance(120_000)
      heaps.push(heapBytes())
    }
    expect(store.size).toBe(10_000)
    // The 135,000 keys of the nine later rounds would take more than 100 bytes each, were they kept.
    expect((heaps.at(-1) as number) - (heaps[0] as number)).toBeLessThan(5_000_000)
  })

  test('leaves no more of a long text than the key that was cut from it', async () => {
    const store = new MemoryStore({ nowUs: manualClock().nowUs })
    const before = heapBytes()
    for (let i = 0; i < 200; i++) {
      const header = `client-number-${i},${'x'.repeat(100_000)}`.split('').join('')
      const owner = header.slice(0, header.indexOf(','))
      const key = `1:{${owner}}:api:v`
      await store.consume([{ key, owner, tail: '}:api:v', policy: visitor, least: 1, most: 1 }])
    }
    expect(store.size).toBe(200)
    // All of the texts would take 20 MB.
    expect(heapBytes() - before).toBeLessThan(5_000_000)
  })
})
