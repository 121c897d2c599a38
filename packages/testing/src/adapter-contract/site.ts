import type http from 'node:http'
import type { Decision } from '@sluice/core'

/** The path of the one route of a {@link Site}; `GET` and `HEAD` reach its handler. */
export const contractPath = '/api/item'

/** An application as the contract asks for it: one handler that answers `ok`, behind limiters. */
export interface Site {
  /** Which proxies to trust: `one-hop` is the one at 127.0.0.1. Default: none. */
  trust?: 'one-hop' | 'everyone'
  /** Headers that the response has before it meets a limiter. */
  responseHeaders?: Readonly<Record<string, string>>
  /** Runs before the limiters, with the raw response. */
  before?: (response: http.ServerResponse) => void
  /** Limiters of the whole application, of the group of routes under `/api`, and of the route, in this order. */
  app?: readonly unknown[]
  group?: readonly unknown[]
  route?: readonly unknown[]
  /**
   * Runs in the handler, which waits for it and answers `ok` with the number that it returns as the status, else 200;
   * a `Readable` that it returns is answered in place of `ok`.
   */
  handler?: () => unknown
}

/** What an `onLimited` of {@link AdapterTools} sends. */
export interface Reply {
  readonly status: number
  readonly body: string
}

/** What a site is built with. */
export interface AdapterTools {
  /** The adapter's own. */
  rateLimit(options: object): unknown
  /** An `onLimited` that sends in the framework's way what `reply` returns, if anything. */
  onLimited(reply: (decision: Decision) => Promise<Reply | undefined>): unknown
}

/** A running site. */
export interface TestServer {
  readonly port: number
  /** The decision that the handler found on its request, for each time it ran. */
  readonly handled: readonly (Decision | undefined)[]
  /** What went to the framework's error path, which answers 500. */
  readonly errors: readonly unknown[]
  /** Ends when the server no longer listens. */
  close(): Promise<void>
}

/** What a server speaks: HTTP/1.1, or HTTP/2 without TLS, which it is asked for only where it can. */
export type Protocol = 'http1' | 'http2'

/** Starts a server on 127.0.0.1 and a free port, for the site that `build` describes. */
export type MakeServer = (build: (tools: AdapterTools) => Site, protocol: Protocol) => Promise<TestServer>
