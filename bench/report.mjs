// Prints what a program measured as a section of Markdown; with --write also puts it into docs/measurements.md.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const page = join(root, 'docs/measurements.md')

export const write = process.argv.includes('--write')

/** A table; the first column reads from the left, the others are numbers. */
export function table(head, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map((_, i) => (i === 0 ? '---' : '---:'))), ...rows.map(line)].join('\n')
}

export const thousands = (number) => Math.round(number).toLocaleString('en')

/** The commit whose code was measured. */
export function commit() {
  const git = (...args) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
  const changed = git('status', '--porcelain', '--', 'packages')
  return `\`${git('rev-parse', '--short', 'HEAD')}\`${changed && ' with changes'}`
}

/** How much longer the same work takes here at times: the slowest and the median of 200 equal loops, by the fastest. */
export function noise() {
  const times = Array.from({ length: 200 }, () => {
    const start = performance.now()
    for (let i = 0; i < 1e6; i++);
    return performance.now() - start
  }).sort((a, b) => a - b)
  const [fastest, median, slowest] = [times[0], times[100], times[199]]
  return `median ${(median / fastest).toFixed(2)}x and slowest ${(slowest / fastest).toFixed(1)}x the fastest of 200 equal loops, load average ${loadavg()[0].toFixed(1)}`
}

/** Runs another program of this folder in a process of its own; resolves to what it printed as JSON. */
export function runAlone(program, ...args) {
  const command = ['--expose-gc', join(root, 'bench', program), ...args.map(String)]
  return JSON.parse(
    execFileSync(process.execPath, command, { encoding: 'utf8', stdio: ['ignore', 'pipe', 2] }),
  )
}

/** Replaces what stands in a file between the two marks of this name; without marks, adds both at the end. */
export function replaceSection(file, name, body) {
  const [start, end] = [`<!-- ${name} -->`, `<!-- /${name} -->`]
  const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
  const section = `${start}\n${body}\n${end}`
  const from = text.indexOf(start)
  const next =
    from < 0
      ? `${text}\n${section}\n`
      : text.slice(0, from) + section + text.slice(text.indexOf(end) + end.length)
  writeFileSync(file, next)
}

/**
 * @param {string} name of the program
 * @param {string} title
 * @param {string} redis version of the server that was measured, if one was
 * @param {string[]} parts paragraphs and tables
 */
export function report(name, title, redis, parts) {
  const versions = [`Node.js ${process.version}`, redis].filter(Boolean).join(', ')
  const body = [
    `## ${title}`,
    `\`npm run bench:${name}\` at commit ${commit()}, ${versions}, ${cpus().length} cores (${cpus()[0].model.trim()}). Noise: ${noise()}.`,
    ...parts,
  ].join('\n\n')
  console.log(body)
  if (write) replaceSection(page, name, body)
}
