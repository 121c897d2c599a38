import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../scripts/prepare.mjs'
import charts from './charts.cjs'
import page from './page.cjs'

const folder = join(root, 'docs/benchmarks')
const figures = join(folder, 'results.json')

/** Writes docs/benchmarks: the figures of a run, and its page and charts. */
export function writePage(results) {
  mkdirSync(folder, { recursive: true })
  writeFileSync(figures, `${JSON.stringify(results)}\n`)
  writeFileSync(join(folder, 'README.md'), page.pageOf(results))
  const drawn = charts.chartsOf(results.sections)
  for (const file in drawn) writeFileSync(join(folder, file), drawn[file])
}

/** Writes page and charts anew from the figures of the last run, after a change of their form or of a bar. */
export function renderPage() {
  writePage(JSON.parse(readFileSync(figures, 'utf8')))
}
