import { testAlgorithms } from './algorithms.js'
import { type MakeStore, StoreBench } from './bench.js'
import { testCalls } from './calls.js'
import { testKeys } from './keys.js'
import { testRefunds } from './refunds.js'

/** What a store can do beyond counting; a toggle that is false swaps the tests that need it for weaker ones. */
export interface StoreCapabilities {
  /**
   * Whether the store counts by the clock it is made with. False for one that asks a clock of its own, such as its
   * server's: its waits are then tested to be bounded, not to be exact. Default true.
   */
  clock?: boolean
}

/**
 * Defines the tests of what every store must do. Uses the globals of Jest, or of Vitest with `globals: true`.
 * @example
 * storeContract('MyStore', (nowUs) => new MyStore({ nowUs }))
 */
export function storeContract(
  name: string,
  makeStore: MakeStore,
  { clock = true }: StoreCapabilities = {},
): void {
  const bench = new StoreBench(makeStore, clock)

  describe(name, () => {
    beforeEach(() => bench.open())
    afterEach(() => bench.store.close())

    testAlgorithms(bench)
    testCalls(bench)
    testKeys(bench)
    testRefunds(bench)

    test('close may be called again', async () => {
      await bench.store.close()
      await expect(bench.store.close()).resolves.toBeUndefined()
    })
  })
}
