// Checks every package as it would be published: its manifest, its types for each way of importing, its files.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { root, run } from './prepare.mjs'

const bin = (/** @type {string} */ name) => join(root, 'node_modules/.bin', name)

/** The packed files that should not be: tests, Lua, build state, and output whose source is gone. @param {string} folder */
function strayFiles(folder) {
  const { stdout } = spawnSync('npm', ['pack', '--dry-run', '--json'], { cwd: folder, encoding: 'utf8' })
  /** @type {string[]} */
  const paths = Object.values(JSON.parse(stdout))[0].files.map(
    (/** @type {{ path: string }} */ file) => file.path,
  )
  return paths.filter((path) => {
    const source = /^dist\/(?:esm|cjs)\/(.+?)(?:\.d)?\.[jt]s(?:\.map)?$/.exec(path)?.[1]
    if (source !== undefined) return !existsSync(join(folder, 'src', `${source}.ts`))
    return /\.test\.|\.lua$|\.tsbuildinfo$|^test\//.test(path)
  })
}

let failed = false
for (const name of readdirSync(join(root, 'packages'))) {
  const folder = join(root, 'packages', name)
  try {
    const stray = strayFiles(folder)
    if (stray.length > 0)
      throw new Error(
        `packages/${name} packs ${stray.slice(0, 5).join(', ')} (${stray.length} in all): run \`npm run clean\` and build again`,
      )
    run(bin('publint'), ['--strict', folder])
    run(bin('attw'), ['--pack', folder])
  } catch (error) {
    failed = true
    console.error(error instanceof Error ? error.message : error)
  }
}
process.exitCode = failed ? 1 : 0
