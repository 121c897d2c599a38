import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'

const running: ChildProcess[] = []

afterEach(async () => {
  for (const program of running.splice(0)) {
    const gone = once(program, 'exit')
    program.kill()
    await gone
  }
})

/**
 * Runs a program until the end of the test, on a free port if it listens.
 * @param end what it prints last before it is ready
 * @returns what it has printed by then
 */
export async function startProgram(
  file: string,
  env: NodeJS.ProcessEnv = {},
  end = '\n',
  stderr: 'inherit' | 'ignore' = 'inherit',
): Promise<string> {
  const program = spawn(process.execPath, [file], {
    env: { ...process.env, PORT: '0', ...env },
    stdio: ['ignore', 'pipe', stderr],
  })
  running.push(program)
  let printed = ''
  for await (const chunk of program.stdout as NonNullable<typeof program.stdout>) {
    printed += chunk
    if (printed.includes(end)) break
  }
  return printed
}

/** The address in what a server printed. */
export function urlIn(printed: string): string {
  return /\w+:\/\/127\.0\.0\.1:\d+/.exec(printed)?.[0] ?? ''
}
