/** A value, or a promise of it. */
export type MaybePromise<T> = T | Promise<T>

/** Promises of other libraries and realms too. */
export function isThenable<T>(value: MaybePromise<T>): value is Promise<T> {
  return typeof (value as Promise<T> | undefined)?.then === 'function'
}

/** What an extractor may know of a request, whatever the framework. */
export interface RequestContext {
  /** The client's address, as far as the framework trusts its proxies. */
  readonly ip: string | undefined
  /** The request's plan, where the limiter has plans. */
  readonly plan: string | undefined
  /** A header of the request by its lower-case name; repeated headers joined by `, `. */
  header(name: string): string | undefined
}

/**
 * Finds who is counted. The first argument is what the framework's handlers get first (`req`, `request`, `ctx`).
 * Nothing found (undefined) falls back to the client's address.
 */
export type Extractor<Req = unknown> = (
  request: Req,
  context: RequestContext,
) => MaybePromise<string | undefined>

/** One request and its response, as an adapter shows them: all that the core needs of a framework. */
export interface Exchange<Req = unknown, Res = unknown> {
  /** What the framework's handlers get first. */
  readonly request: Req
  /** The framework's response: `res`, `reply`, `ctx.response`. */
  readonly response: Res
  /** The same object for one request, however often and wherever it is limited. */
  readonly identity: object
  readonly method: string
  /** The client's address, as far as the framework trusts its proxies. */
  readonly ip: string | undefined
  /** Whether the framework believes any address that a client writes into `X-Forwarded-For`. */
  readonly trustsEveryProxy: boolean
  /** Whether the framework takes no address from a header, whoever sends it. */
  readonly trustsNoProxy: boolean
  /** Whether the client's connection is closed. */
  readonly gone: boolean
  /** Whether headers cannot be set: they went out already, or there is no response yet, for which see `writeHeaders`. */
  readonly headersSent: boolean
  /** A header of the request by its lower-case name; repeated headers joined by `, `. */
  header(name: string): string | undefined
  /** A header of the response so far; a list joined by `, `. */
  responseHeader(name: string): string | undefined
  /** Sets a header of the response, in place of one of that name. */
  setResponseHeader(name: string, value: string): void
  /** Calls the listener once, when the response was handed over in full, or the client left before (false). */
  onEnd(listener: (finished: boolean) => void): void
}

/** What {@link onResponseEnd} needs of a response of Node.js. */
interface NodeResponse {
  readonly destroyed?: boolean
  /** Of HTTP/2, where `finish` is emitted for a stream that was reset, too. */
  readonly stream?: { readonly aborted?: boolean; readonly rstCode?: number }
  once(event: 'finish' | 'close', listener: () => void): unknown
}

/** {@link Exchange.onEnd} for a response of Node.js. */
export function onResponseEnd(response: NodeResponse, listener: (finished: boolean) => void): void {
  let ended = false
  const end = (finished: boolean): void => {
    if (!ended) listener(finished)
    ended = true
  }
  if (response.destroyed) end(false)
  response.once('finish', () => end(!response.stream?.aborted && !response.stream?.rstCode))
  response.once('close', () => end(false))
}
/** A header's value as Node.js gives it, in the one line that an {@link Exchange} shows. */
export function joinHeader(value: number | string | readonly string[] | undefined): string | undefined {
  return typeof value === 'object' ? value.join(', ') : value?.toString()
}
