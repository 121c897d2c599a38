// Runs the Worker on workerd, the runtime of Cloudflare, on this machine alone.
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { Miniflare } from 'miniflare'

const { PORT = '3000' } = process.env
const { outputFiles } = await build({
  entryPoints: [fileURLToPath(new URL('worker.mjs', import.meta.url))],
  bundle: true,
  write: false,
  format: 'esm',
  conditions: ['workerd', 'worker'],
  external: ['cloudflare:*'],
})
const miniflare = new Miniflare({
  modules: [{ type: 'ESModule', path: 'worker.mjs', contents: outputFiles[0].text }],
  compatibilityDate: '2026-07-01',
  host: '127.0.0.1',
  port: Number(PORT),
  // What Cloudflare tells of a request; without it Miniflare asks for one.
  cf: { colo: 'DEV' },
  durableObjects: { RATE_LIMITS: { className: 'RateLimitObject', useSQLite: true } },
  ratelimits: { API: { namespace_id: '1001', simple: { limit: 70, period: 60 } } },
})
const { port } = await miniflare.ready
console.log(`Worker listening on http://127.0.0.1:${port}, counting in Durable Objects`)

process.once('SIGTERM', () => miniflare.dispose())
