// Measures the sections, prints the page, and as it is told writes it or checks the bars. What bench.mjs runs once the
// peers are installed.
import { readFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { root } from '../scripts/prepare.mjs'
import check from './check.cjs'
import page from './page.cjs'
import { commit, noise } from './report.mjs'
import { sections } from './sections/index.mjs'
import { withRedis } from './servers.mjs'
import { writePage } from './write.mjs'

/** Package and version of all that is compared. */
function versions(redis) {
  const { dependencies } = JSON.parse(readFileSync(join(root, 'bench/package.json'), 'utf8'))
  const others = Object.entries(dependencies).filter(([, version]) => !version.startsWith('file:'))
  return [`Node.js ${process.version}`, redis, ...others.map((entry) => entry.join(' '))].join(', ')
}

const load = () => loadavg()[0].toFixed(1)

const progress = (letter) => (step) =>
  process.stderr.write(`${Math.round(performance.now() / 1000)} s, ${letter}: ${step}\n`)

/** Runs the suite; resolves to whether it shows what it has to, as far as that was asked. */
export async function runSuite(options, args) {
  const started = performance.now()
  const [loadBefore, quiet] = [load(), noise()]
  const measured = {}
  const version = await withRedis(async (redis) => {
    for (const letter of options.only)
      measured[letter] = await sections[letter](redis, options, progress(letter))
    return redis.version
  })
  const results = {
    meta: {
      command: ['npm run bench', ...(args.length > 0 ? ['--', ...args] : [])].join(' '),
      commit: commit(),
      versions: versions(version),
      machine: `${cpus().length} cores (${cpus()[0].model.trim()})`,
      noise: quiet,
      load: `${loadBefore} before, ${load()} after`,
      minutes: Math.round((performance.now() - started) / 6000) / 10,
    },
    sections: measured,
  }
  const text = page.pageOf(results)
  console.log(text)
  if (options.write) writePage(results)
  return !options.check || check.passes(check.check(measured), options.quick)
}
