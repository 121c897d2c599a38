// Builds every package, ESM and CommonJS, in the order of their references. With --clean: removes what was built.
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root, run } from './prepare.mjs'

const packages = readdirSync(join(root, 'packages')).map((name) => join(root, 'packages', name))

if (process.argv.includes('--clean')) {
  for (const folder of packages) rmSync(join(folder, 'dist'), { recursive: true, force: true })
} else {
  try {
    run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '--build'])
  } catch {
    process.exit(1)
  }
  for (const folder of packages) {
    const cjs = join(folder, 'dist/cjs')
    if (existsSync(cjs)) writeFileSync(join(cjs, 'package.json'), '{"type":"commonjs"}\n')
  }
}
