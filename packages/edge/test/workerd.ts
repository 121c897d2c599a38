import { join } from 'node:path'
import { Miniflare, type MiniflareOptions } from 'miniflare'
import { bundleForEdge } from './bundle.js'

/** A workerd that runs a program of this folder. */
export interface Workerd {
  readonly url: URL
  stop(): Promise<void>
}

/** Fixed, so that a newer workerd behaves alike. */
const compatibilityDate = '2026-07-01'

/** Starts workerd with a program, by its name in this folder. */
export async function startWorkerd(
  program: string,
  options: Readonly<Record<string, unknown>> = {},
): Promise<Workerd> {
  const { code } = await bundleForEdge(`export * from './${program}'; export { default } from './${program}'`)
  const miniflare = new Miniflare({
    modules: [{ type: 'ESModule', path: join(__dirname, 'worker.mjs'), contents: code }],
    host: '127.0.0.1',
    // Past the worker of Miniflare, which does not tell of clients that leave.
    unsafeDirectSockets: [{ host: '127.0.0.1', port: 0 }],
    cf: false,
    compatibilityDate,
    compatibilityFlags: ['enable_request_signal'],
    ...options,
  } as MiniflareOptions)
  await miniflare.ready
  return { url: await miniflare.unsafeGetDirectURL(), stop: () => miniflare.dispose() }
}
