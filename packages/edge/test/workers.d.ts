declare module 'cloudflare:workers' {
  /** The bindings of the Worker. */
  export const env: Readonly<Record<string, unknown>>
  /** Keeps the request at hand alive until the promise settles. */
  export function waitUntil(promise: Promise<unknown>): void
}
