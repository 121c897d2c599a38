// Programs of `workers` in processes of their own.
import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const env = { ...process.env, NODE_ENV: 'production' }
/** Longer than any worker takes; a contestant that hangs is shown as failed. */
const timeout = 120_000

/** Runs a program with a task to its end; resolves to what it printed as JSON, rejects with its error. */
export async function runWorker(program, task) {
  const args = ['--expose-gc', join(here, 'workers', program), JSON.stringify(task)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], env, timeout })
  const closed = once(child, 'close')
  const [out, error, [code, signal]] = await Promise.all([textOf(child.stdout), textOf(child.stderr), closed])
  if (code !== 0) throw failure(error, code ?? signal)
  return JSON.parse(out)
}

/**
 * Starts a program with a task, to talk to. `told()` resolves to its next message and rejects if it ends instead;
 * `stop()` ends it and resolves when it has gone.
 */
export function startWorker(program, task = {}) {
  const stdio = ['ignore', 'ignore', 'pipe', 'ipc']
  const child = fork(join(here, 'workers', program), [JSON.stringify(task)], { stdio, env })
  const errors = textOf(child.stderr)
  const exited = once(child, 'exit')
  const failed = exited.then(async ([code, signal]) => {
    throw failure(await errors, code ?? signal)
  })
  failed.catch(() => {})
  return {
    pid: child.pid,
    tell: (message) => child.send(message),
    told: async () => (await Promise.race([once(child, 'message'), failed]))[0],
    async stop() {
      if (child.exitCode === null) child.kill()
      await exited
    },
  }
}

async function textOf(stream) {
  return (await stream.setEncoding('utf8').toArray()).join('')
}

/** The line of a stack trace that names the error. */
function failure(stderr, end) {
  const line = stderr.split('\n').find((text) => /^(?:Uncaught )?\w*Error\b/.test(text))
  return new Error(line?.slice(0, 200) ?? `ended with ${end}`)
}
