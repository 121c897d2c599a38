// Finds a Valkey server, the second engine that tests run against.
const fs = require('node:fs')
const path = require('node:path')
const { isDebianRoot, onPath, succeeds } = require('./commands.cjs')

const cache = path.join(__dirname, '../../node_modules/.cache')
const unpacked = path.join(cache, 'valkey')
// The server is a link to a binary of the tools.
const packages = ['valkey-server', 'valkey-tools']
const inPackage = 'usr/bin/valkey-server'

// Debian 12 has Valkey in its backports only.
const source =
  'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm-backports main\n'

/** @typedef {{ path: string, missing?: undefined } | { path?: undefined, missing: string }} FoundValkey */

/**
 * Finds a server: the one of SLUICE_VALKEY, `valkey-server` on PATH, or on Debian as root one that is downloaded once,
 * into a cache under node_modules. SLUICE_VALKEY_MISSING, a reason, says that it was looked for in vain.
 * @returns {FoundValkey}
 */
function findValkey() {
  const { SLUICE_VALKEY: given, SLUICE_VALKEY_MISSING: missing } = process.env
  const found = given ?? onPath('valkey-server')
  if (found) return { path: found }
  if (missing) return { missing }
  const cached = path.join(unpacked, inPackage)
  if (!fs.existsSync(cached)) {
    if (!isDebianRoot())
      return { missing: 'valkey-server is not on PATH, and is downloaded on Debian as root only' }
    if (!download()) return { missing: 'valkey-server is not on PATH, and apt-get could not download it' }
  }
  if (!succeeds(cached, ['--version'], { quiet: true }))
    return { missing: `${cached} does not run on this system` }
  return { path: cached }
}

/** Downloads and unpacks the packages, beside the machine's own sources and packages. */
function download() {
  fs.mkdirSync(cache, { recursive: true })
  // A folder of its own, renamed when complete: others may download at the same time, and the first one wins.
  const folder = fs.mkdtempSync(path.join(cache, 'valkey-'))
  try {
    fs.writeFileSync(path.join(folder, 'sources.list'), source)
    for (const name of ['lists', 'cache', 'root']) fs.mkdirSync(path.join(folder, name))
    const settings = {
      'Dir::Etc::sourcelist': path.join(folder, 'sources.list'),
      'Dir::Etc::sourceparts': '-',
      'Dir::State::lists': path.join(folder, 'lists'),
      'Dir::Cache': path.join(folder, 'cache'),
      'APT::Sandbox::User': 'root',
      'APT::Update::Error-Mode': 'any',
    }
    const apt = Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`])
    const here = { cwd: folder }
    if (!succeeds('apt-get', [...apt, 'update'], here)) return false
    if (!succeeds('apt-get', [...apt, 'download', ...packages], here)) return false
    for (const file of fs.readdirSync(folder))
      if (file.endsWith('.deb') && !succeeds('dpkg', ['-x', file, 'root'], here)) return false
    try {
      fs.renameSync(path.join(folder, 'root'), unpacked)
    } catch {
      return fs.existsSync(path.join(unpacked, inPackage))
    }
    return true
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

module.exports = { findValkey }
