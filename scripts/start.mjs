// Installs and builds where needed, then runs the example server; PORT and REDIS_URL are passed on to it.
import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { join } from 'node:path'
import { prepare, root } from './prepare.mjs'

try {
  prepare()
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exit(1)
}

const server = spawn(process.execPath, [join(root, 'examples/server/server.mjs')], {
  cwd: root,
  stdio: 'inherit',
})
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
  process.on(signal, () => server.kill(signal))
}
// npm's shell does not pass its signals on: when it is gone, so are we.
const parent = process.ppid
setInterval(() => process.ppid !== parent && server.kill('SIGTERM'), 500).unref()
server.on('exit', (code, signal) => {
  process.exitCode = signal ? 128 + constants.signals[signal] : (code ?? 1)
})
