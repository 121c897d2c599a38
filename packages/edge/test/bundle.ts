import { existsSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { join } from 'node:path'
import { build } from 'esbuild'

const packages = join(__dirname, '../..')

/** What Node.js has beyond the globals that all runtimes share, but for what bundlers put in place themselves. */
const nodeGlobals = [
  'process',
  'Buffer',
  'global',
  '__dirname',
  '__filename',
  'setImmediate',
  'clearImmediate',
]

/** A program for the edge, from the sources, and what it would need of Node.js. */
export async function bundleForEdge(code: string): Promise<{ code: string; needs: string[] }> {
  const needs = new Set<string>()
  const { outputFiles } = await build({
    stdin: { contents: code, resolveDir: __dirname, loader: 'ts' },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    conditions: ['worker'],
    external: ['cloudflare:workers'],
    define: Object.fromEntries(nodeGlobals.map((name) => [name, `needs_${name}`])),
    plugins: [
      {
        name: 'sources',
        setup({ onResolve }) {
          onResolve({ filter: /^@sluice\// }, ({ path }) => {
            const [, name, entry = 'index'] = path.split('/')
            const source = join(packages, `${name}/src/${entry}`)
            return { path: existsSync(source) ? `${source}/index.ts` : `${source}.ts` }
          })
          onResolve({ filter: /^[^.]/ }, ({ path }) => {
            if (!builtinModules.includes(path.replace(/^node:/, ''))) return undefined
            needs.add(path)
            return { path, external: true }
          })
        },
      },
    ],
  })
  const text = outputFiles[0]?.text ?? ''
  for (const [, name] of text.matchAll(/\bneeds_(\w+)/g)) needs.add(`${name}`)
  return { code: text, needs: [...needs] }
}
