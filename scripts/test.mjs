// Runs every test against a real Redis: the one of REDIS_URL, else a private one that is stopped afterwards.
// Arguments are passed to jest. The last line on stdout is `N passed, N failed`.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { prepare, root } from './prepare.mjs'
import redis from './servers/redis.cjs'
import { findValkey } from './servers/valkey.cjs'

/** @type {(() => unknown)[]} what to do before leaving, last one first */
const cleanup = []
/** @type {import('node:child_process').ChildProcess | undefined} */
let jest
/** @type {NodeJS.Signals | undefined} */
let interrupted

for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
  process.on(signal, () => {
    interrupted = signal
    jest?.kill(signal)
  })
}

/** The URL of the Redis to test against. */
async function provideRedis() {
  const given = process.env.REDIS_URL
  if (given) {
    await redis.ping(given).catch((error) => {
      throw new Error(
        `REDIS_URL is set, but Redis does not answer there (${error.message}). Unset it to use a private server.`,
      )
    })
    return given
  }
  if (redis.findRedisServer().kind === 'docker') return composeRedis()
  const server = await redis.startRedis()
  cleanup.push(server.stop)
  return server.url
}

/** The `redis` service of docker-compose.yml, stopped afterwards unless it ran before. */
async function composeRedis() {
  const compose = (/** @type {string[]} */ ...args) =>
    spawnSync('docker', ['compose', ...args], { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 2] })
  const ran = compose('ps', '--quiet', '--status', 'running', 'redis').stdout.trim() !== ''
  if (!ran) cleanup.push(() => compose('stop', 'redis'))
  if (compose('up', '--detach', '--wait', 'redis').status !== 0)
    throw new Error('docker compose did not start redis')
  const url = `redis://${compose('port', 'redis', '6379').stdout.trim()}`
  await redis.ping(url)
  return url
}

/** What tells the tests where Valkey is, or why it is not. */
function provideValkey() {
  const { path, missing } = findValkey()
  if (path) return { SLUICE_VALKEY: path }
  console.error(`!!! NOT TESTED AGAINST VALKEY: ${missing} !!!`)
  return { SLUICE_VALKEY_MISSING: missing }
}

async function runTests() {
  prepare()
  const url = await provideRedis()
  const valkey = provideValkey()
  const folder = mkdtempSync(join(tmpdir(), 'sluice-test-'))
  cleanup.push(() => rmSync(folder, { recursive: true, force: true }))
  if (interrupted) return { passed: 0, failed: 0, skipped: 0, ok: false }

  const report = join(folder, 'report.json')
  const args = [
    join(root, 'node_modules/jest/bin/jest.js'),
    ...process.argv.slice(2),
    '--json',
    '--outputFile',
    report,
  ]
  jest = spawn(process.execPath, args, {
    cwd: root,
    env: { ...process.env, REDIS_URL: url, ...valkey },
    stdio: ['inherit', 2, 2],
  })
  const [code] = await once(jest, 'exit')
  if (!existsSync(report)) throw new Error(`jest ended with exit code ${code} before it told its results.`)
  const result = JSON.parse(readFileSync(report, 'utf8'))
  return {
    passed: result.numPassedTests,
    // A file that does not load, or breaks outside of its tests, fails as a whole.
    failed: result.numFailedTests + result.numRuntimeErrorTestSuites,
    skipped: result.numPendingTests + result.numTodoTests,
    ok: code === 0,
  }
}

let result = { passed: 0, failed: 1, skipped: 0, ok: false }
try {
  result = await runTests()
} catch (error) {
  if (!interrupted) console.error(error instanceof Error ? error.message : error)
} finally {
  for (const undo of cleanup.reverse()) await undo()
}
const { passed, failed, skipped, ok } = result
if (passed + failed === 0) console.error('No test ran.')
console.log(`${passed} passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ''}`)
process.exitCode = interrupted
  ? 128 + constants.signals[interrupted]
  : ok && passed > 0 && failed === 0
    ? 0
    : 1
