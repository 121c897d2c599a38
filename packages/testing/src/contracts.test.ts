import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Check, MemoryStore, type Store, type Verdict } from '@sluice/core'
import { failuresOf } from '../test/collect.js'
import { MapStore } from '../test/map-store.js'
import { compareStores, type MakeStores } from './parity.js'
import type { MakeStore } from './store-contract/bench.js'
import { storeContract } from './store-contract/store-contract.js'

/** A store that is right but for the methods given. */
function faulty(changes: (right: MapStore, nowUs: () => number) => Partial<Store>) {
  return (nowUs: () => number): Store => {
    const right = new MapStore(nowUs)
    const own = Object.entries(changes(right, nowUs)).map(([name, value]) => [name, { value }])
    const bind = (name: 'consume' | 'peek' | 'close') => [name, { value: right[name].bind(right) }]
    const methods = (['consume', 'peek', 'close'] as const).map(bind)
    return Object.create(right, Object.fromEntries([...methods, ...own]))
  }
}

const alone = (right: MapStore, checks: readonly Check[]): Promise<Verdict[]> =>
  Promise.all(checks.map(async (check) => (await right.consume([check]))[0] as Verdict))

const faults: [fault: string, store: MakeStore, test: string][] = [
  [
    'charges each check for itself',
    faulty((right) => ({ consume: (checks) => alone(right, checks) })),
    'are charged all or none: the one that denies comes %s',
  ],
  [
    'charges what is peeked at',
    faulty((right) => ({ peek: (checks) => right.consume(checks) })),
    'peek answers what consume would, and charges nothing',
  ],
  [
    'answers for no policy but those that refuse',
    faulty((right) => ({
      consume: (checks) =>
        right.consume(checks.map((c) => ({ ...c, policy: { ...c.policy, shadow: false } }))),
    })),
    'a shadow that denies says so, is not charged, and refuses nothing',
  ],
  [
    'charges a denial',
    faulty((right) => ({
      async consume(checks) {
        const verdicts = await right.consume(checks)
        if (verdicts.some(({ allowed }) => !allowed)) {
          await right.consume(checks.map((check) => ({ ...check, least: 1, most: 1 })))
        }
        return verdicts
      },
    })),
    'a denial changes nothing',
  ],
  [
    'takes nothing but all',
    faulty((right) => ({
      consume: (checks) => right.consume(checks.map((check) => ({ ...check, least: check.most }))),
    })),
    'is granted, where %s',
  ],
  [
    'decides before others have written',
    faulty((right) => ({
      async consume(checks) {
        const verdicts = await right.peek(checks)
        await new Promise(setImmediate)
        await right.consume(checks)
        return verdicts
      },
    })),
    'of 1000 requests at once exactly the limit is admitted',
  ],
  [
    'mixes keys by case',
    faulty((right) => ({
      consume: (checks) => right.consume(checks.map((check) => ({ ...check, key: check.key.toLowerCase() }))),
    })),
    'that look alike are counted apart',
  ],
  [
    'names a wait of whole milliseconds',
    faulty((right) => ({
      async consume(checks) {
        const verdicts = await right.consume(checks)
        return verdicts.map((verdict) => ({ ...verdict, retryUs: Math.ceil(verdict.retryUs / 1000) * 1000 }))
      },
    })),
    'retryUs is exact: cost %d is denied 1 us before, and passes then',
  ],
  [
    'forgets a key too early',
    faulty((right, nowUs) => {
      let atUs = 0
      const forget = async (checks: readonly Check[]): Promise<void> => {
        if (atUs > 0 && nowUs() > atUs + 1e6) await right.reset(checks.map(({ key }) => key))
        atUs = nowUs()
      }
      return { consume: (checks) => forget(checks).then(() => right.consume(checks)) }
    }),
    'retryUs is exact: cost %d is denied 1 us before, and passes then',
  ],
  [
    'answers in another order',
    faulty((right) => ({ consume: async (checks) => [...(await right.consume(checks))].reverse() })),
    'are answered in their order',
  ],
  [
    'counts by policy object',
    faulty((right) => {
      const ids = new WeakMap<object, number>()
      let last = 0
      const idOf = (policy: object): number => {
        const id = ids.get(policy) ?? ++last
        ids.set(policy, id)
        return id
      }
      const keyed = (checks: readonly Check[]): Check[] =>
        checks.map((check) => ({ ...check, key: `${check.key}#${idOf(check.policy)}` }))
      return {
        consume: (checks) => right.consume(keyed(checks)),
        peek: (checks) => right.peek(keyed(checks)),
      }
    }),
    'alone say what is counted, whatever object the policy is',
  ],
  [
    'closes once only',
    faulty(() => {
      let closed = false
      return {
        close: async () => {
          if (closed) throw new Error('closed')
          closed = true
        },
      }
    }),
    'close may be called again',
  ],
]

test.each(faults)('storeContract finds a store that %s', async (_, store, test) => {
  const failures = (make: MakeStore) => failuresOf(test, () => storeContract('a store', make))
  expect(await failures(store)).toBeGreaterThan(0)
  expect(await failures(faulty(() => ({})))).toBe(0)
})

describe('parity', () => {
  const stores =
    (other: (nowUs: () => number) => Store): MakeStores =>
    (nowUs) => [new MemoryStore({ nowUs }), other(nowUs)]

  test('finds a wait that is 1 us too long, and shows the call', async () => {
    const late = faulty((right) => ({
      async consume(checks) {
        const verdicts = await right.consume(checks)
        return verdicts.map((verdict) => ({ ...verdict, resetUs: verdict.resetUs + 1 }))
      },
    }))
    await expect(compareStores('gcra', stores(late))).rejects.toThrow('Property failed')
  })

  test('finds a store that charges each check for itself', async () => {
    const split = faulty((right) => ({ consume: (checks) => alone(right, checks) }))
    await expect(compareStores('fixed-window', stores(split))).rejects.toThrow('Property failed')
  })

  test('closes both stores', async () => {
    const close = jest.fn(async () => {})
    const closing = faulty(() => ({ close }))
    await compareStores('gcra', (nowUs) => [closing(nowUs), closing(nowUs)], { runs: 1 })
    expect(close).toHaveBeenCalledTimes(2)
  })
})

test('the README shows the store that the tests use', () => {
  const [readme, store] = ['../README.md', '../test/map-store.ts'].map((file) =>
    readFileSync(join(__dirname, file), 'utf8'),
  )
  expect(readme).toContain(store)
})
