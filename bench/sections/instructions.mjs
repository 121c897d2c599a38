import { execFile } from 'node:child_process'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import commands from '../../scripts/servers/commands.cjs'
import redis from '../../scripts/servers/redis.cjs'
import { contestants, controls, kindOf, peers, strict, threePolicies } from '../contestants/redis.mjs'
import { inRounds } from '../rounds.mjs'

const run = promisify(execFile)
const keys = Array.from({ length: 1000 }, (_, i) => `ip:10.0.${i >> 8}.${i & 255}`)

/** Instructions of the server's user code for a decision, which no load changes; undefined without valgrind. */
export async function measureInstructions({ quick }, onProgress) {
  const valgrind = commands.onPath('valgrind')
  if (!valgrind) return undefined
  const folder = mkdtempSync(join(tmpdir(), 'sluice-callgrind-'))
  const script = join(folder, 'redis-server')
  const out = `--callgrind-out-file=${join(folder, 'out')}`
  writeFileSync(script, `#!/bin/sh\nexec ${valgrind} --tool=callgrind ${out} ${redis.serverBinary()} "$@"\n`)
  chmodSync(script, 0o755)
  const server = await redis.startRedis({ binary: script })
  const tell = (command) => run('vgdb', [`--pid=${server.pid}`, command])

  /** Since the last dump, which set the counters back. */
  async function counted() {
    await tell('dump')
    const dumps = readdirSync(folder).filter((name) => name.startsWith('out.'))
    const latest = dumps.sort((a, b) => Number(a.split('.')[1]) - Number(b.split('.')[1])).at(-1)
    return Number(/^(?:totals|summary): (\d+)/m.exec(readFileSync(join(folder, latest), 'utf8'))[1])
  }

  async function decide(ask, callers, decisions) {
    let asked = 0
    const call = async () => {
      while (asked < decisions) await ask(keys[asked++ % keys.length])
    }
    await Promise.all(Array.from({ length: callers }, call))
  }

  const decisions = quick ? 256 : 2560
  const rows = Object.keys({ ...controls, ...strict, ...threePolicies, ...peers }).map((name) => ({
    name,
    kind: kindOf(name),
    async measure() {
      const limit = name === 'sliding-window-log' ? 100_000 : 100_000_000
      const { ask, close } = await contestants[name](server.url, {
        limit,
        windowMs: 60_000,
        duplicate: false,
      })
      const figures = {}
      try {
        for (const callers of [1, 64]) {
          await decide(ask, callers, 128)
          await counted()
          await decide(ask, callers, decisions)
          figures[`${callers}/instructions`] = (await counted()) / decisions
        }
      } finally {
        await close()
      }
      return figures
    },
  }))
  try {
    return await inRounds(rows, 1, onProgress)
  } finally {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}
