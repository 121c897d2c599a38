// Finds and runs the commands of the machine.
const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')

/** @param {string} command */
function onPath(command) {
  for (const folder of (process.env.PATH ?? '').split(path.delimiter)) {
    const file = path.join(folder, command)
    try {
      fs.accessSync(file, fs.constants.X_OK)
      return file
    } catch {}
  }
  return undefined
}

/**
 * Runs a command, its output on stderr, so that stdout stays the caller's.
 * @param {string} command
 * @param {string[]} args
 * @param {object} [options]
 * @param {boolean} [options.quiet]
 * @param {string} [options.cwd]
 */
function succeeds(command, args, { quiet = false, cwd } = {}) {
  const { status } = spawnSync(command, args, { cwd, stdio: quiet ? 'ignore' : ['ignore', 2, 2] })
  return status === 0
}

function isDebianRoot() {
  return process.getuid?.() === 0 && fs.existsSync('/etc/debian_version') && onPath('apt-get') !== undefined
}

module.exports = { onPath, succeeds, isDebianRoot }
