// Measures Sluice beside its peers; see CONTRIBUTING. Installs what it compares with in this folder, starts a Redis of its
// own. Options: --only a,e (sections), --quick (short, for trying), --write (docs/benchmarks), --check (exit code 1 when
// the run does not show what it has to), --render (measures nothing: writes the page of the last run anew).
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { prepare, root, run } from '../scripts/prepare.mjs'
import options from './options.cjs'
import { renderPage } from './write.mjs'

const args = process.argv.slice(2)

function install() {
  const lock = join(root, 'bench/package-lock.json')
  const installed = join(root, 'bench/node_modules/.package-lock.json')
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(lock).mtimeMs) return
  run('npm', ['ci', '--prefix', 'bench', '--no-audit', '--no-fund'])
}

try {
  const chosen = options.readOptions(args)
  if (chosen.render) renderPage()
  else {
    prepare()
    install()
    const { runSuite } = await import('./suite.mjs')
    process.exitCode = (await runSuite(chosen, args)) ? 0 : 1
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
