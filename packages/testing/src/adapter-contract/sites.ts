import {
  type HeaderSet,
  Limiter,
  type LimiterOptions,
  type Logger,
  type Policy,
  type Store,
} from '@sluice/core'
import type { MakeStore } from '../store-contract/bench.js'
import type { AdapterTools, MakeServer, Protocol, Site, TestServer } from './site.js'

/** What most tests limit by: a minute that begins when the test does. */
export const window = { algorithm: 'fixed-window', window: '1m' } as const

/** For tests in which nothing may come back, whatever the clock. */
export const lasting = { algorithm: 'fixed-window', window: '400d' } as const

export const headerSets: readonly HeaderSet[] = ['draft-8', 'draft-7', 'draft-6', 'legacy']

/** Where the clock stands at first: on an edge of every window up to a day. */
export const startUs = 20_000 * 86_400e6

/**
 * No store is too slow on a busy machine, and no warning is written but where a test looks for it. The clock of the store
 * is moved by hand, which no memory of a denial could know.
 */
const defaults = { timeoutMs: 10_000, denyStaleMs: 0, logger: { warn: () => {} } }

/** The sites of a test, whose limiters count in one store by one clock. */
export class Sites {
  /** The clock of the store, in microseconds since the epoch. */
  nowUs = startUs
  #store: Store | undefined
  readonly #makeServer: MakeServer
  #servers: TestServer[] = []

  constructor(makeServer: MakeServer) {
    this.#makeServer = makeServer
  }

  /** Begins a test. */
  async begin(makeStore: MakeStore): Promise<void> {
    this.nowUs = startUs
    this.#store = await makeStore(() => this.nowUs)
  }

  /** Ends a test. */
  async end(): Promise<void> {
    await Promise.all(this.#servers.splice(0).map((server) => server.close()))
    await this.#store?.close()
  }

  /** Where limiters count that are given no store. */
  get store(): Store {
    if (!this.#store) throw new Error('A test has to begin before it has a store')
    return this.#store
  }

  async serve(build: (tools: AdapterTools) => Site, protocol: Protocol = 'http1'): Promise<TestServer> {
    const server = await this.#makeServer((tools) => {
      const rateLimit = (options: object): unknown =>
        tools.rateLimit('limiter' in options ? options : { store: this.store, ...defaults, ...options })
      return build({ rateLimit, onLimited: (reply) => tools.onLimited(reply) })
    }, protocol)
    this.#servers.push(server)
    return server
  }

  /** Serves a site whose one limiter, of the whole application, has these options. */
  serveLimited(options: object, site: Site = {}, protocol?: Protocol): Promise<TestServer> {
    return this.serve(({ rateLimit }) => ({ ...site, app: [rateLimit({ ...window, ...options })] }), protocol)
  }

  /** A limiter to be given to a site. */
  limiter(options: LimiterOptions & Partial<Policy>): Limiter {
    return new Limiter({ store: this.store, ...defaults, ...options })
  }
}

/** A logger that keeps its lines. */
export function recordingLogger(): { readonly lines: string[]; readonly logger: Logger } {
  const lines: string[] = []
  return { lines, logger: { warn: (line) => lines.push(line) } }
}
