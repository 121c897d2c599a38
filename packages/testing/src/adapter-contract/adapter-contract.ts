import { MemoryStore } from '@sluice/core'
import type { MakeStore } from '../store-contract/bench.js'
import { bytesTests } from './bytes.js'
import { connectionsTests } from './connections.js'
import { costAndLimitTests } from './cost-and-limit.js'
import { disconnectsTests } from './disconnects.js'
import { handlerTests } from './handler.js'
import { headersTests } from './headers.js'
import { keysTests } from './keys.js'
import { optionsTests } from './options.js'
import { plansTests } from './plans.js'
import { queueTests } from './queue.js'
import { refundsTests } from './refunds.js'
import { refusalsTests } from './refusals.js'
import { requestFunctionsTests } from './request-functions.js'
import { severalLimitersTests } from './several-limiters.js'
import type { MakeServer } from './site.js'
import { Sites } from './sites.js'
import { skipTests } from './skip.js'
import { storesTests } from './stores.js'
import { waitsTests } from './waits.js'

/** Where the limiters of the contract count, and what the framework can do beyond HTTP/1.1. */
export interface AdapterCapabilities {
  /** Makes the store of each test. Default: a `MemoryStore`. */
  makeStore?: MakeStore
  /**
   * Whether that store counts by the clock it is made with. Where it does not, what depends on the time is left to
   * stores that do, and what reaches the handler is tested. Default true.
   */
  clock?: boolean
  /** Whether the framework serves HTTP/2; where it does not, that such requests are not counted is. Default false. */
  http2?: boolean
}

/**
 * Defines the tests of what every adapter must do, over real HTTP. Uses the globals of Jest, or of Vitest with
 * `globals: true`.
 */
export function adapterContract(
  name: string,
  makeServer: MakeServer,
  {
    makeStore = (nowUs) => new MemoryStore({ nowUs }),
    clock = true,
    http2 = false,
  }: AdapterCapabilities = {},
): void {
  describe(name, () => {
    const sites = new Sites(makeServer)
    beforeEach(() => sites.begin(makeStore))
    afterEach(() => sites.end())

    handlerTests(sites)
    connectionsTests(sites, http2)
    disconnectsTests(sites, http2)
    if (!clock) return
    bytesTests(sites, 'http1')
    if (http2) bytesTests(sites, 'http2')
    headersTests(sites)
    waitsTests(sites)
    severalLimitersTests(sites)
    costAndLimitTests(sites)
    requestFunctionsTests(sites)
    keysTests(sites)
    plansTests(sites)
    skipTests(sites)
    refusalsTests(sites)
    refundsTests(sites)
    queueTests(sites)
    storesTests(sites)
    optionsTests(sites)
  })
}
