import { spawnSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The root of the repository. */
export const root = dirname(dirname(fileURLToPath(import.meta.url)))

/**
 * Runs a command in the root of the repository, its output passed through to stderr, and throws when it fails.
 * @param {string} command
 * @param {string[]} args
 */
export function run(command, args) {
  const { error, status, signal } = spawnSync(command, args, { cwd: root, stdio: ['ignore', 2, 2] })
  if (error) throw error
  if (status !== 0)
    throw new Error(`${command} ${args.join(' ')} ended with ${signal ?? `exit code ${status}`}`)
}

/** Makes a fresh clone ready to run: installs when node_modules is missing or older than the lock, then builds. */
export function prepare() {
  const lock = join(root, 'package-lock.json')
  const installed = join(root, 'node_modules/.package-lock.json')
  if (!existsSync(installed) || statSync(installed).mtimeMs < statSync(lock).mtimeMs) {
    run('npm', ['ci', '--no-audit', '--no-fund'])
  }
  run(process.execPath, [join(root, 'scripts/build.mjs')])
}
