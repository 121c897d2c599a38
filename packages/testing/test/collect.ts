/** A test that a contract defines. */
export interface CollectedTest {
  /** As it is written, with its placeholders. */
  readonly name: string
  readonly run: () => Promise<void>
}

type Hook = () => unknown

/** The tests that `define` defines by the globals, instead of running as some of the file's own. */
export function collect(define: () => void): CollectedTest[] {
  const tests: CollectedTest[] = []
  const before: Hook[] = []
  const after: Hook[] = []
  const block = (_name: string, body: (...row: unknown[]) => void, ...row: unknown[]): void => body(...row)
  const test = (name: string, body: (...row: unknown[]) => unknown, ...row: unknown[]): void => {
    const run = async (): Promise<void> => {
      for (const hook of before) await hook()
      try {
        await body(...row)
      } finally {
        for (const hook of after) await hook()
      }
    }
    tests.push({ name, run })
  }
  const each =
    <Body>(define: (name: string, body: Body, ...row: unknown[]) => void) =>
    (rows: readonly unknown[]) =>
    (name: string, body: Body) => {
      for (const row of rows) define(name, body, ...[row].flat())
    }
  const { describe, test: realTest, beforeEach, afterEach } = globalThis
  Object.assign(globalThis, {
    describe: Object.assign(block, { each: each(block) }),
    test: Object.assign(test, { each: each(test) }),
    beforeEach: (hook: Hook) => before.push(hook),
    afterEach: (hook: Hook) => after.push(hook),
  })
  try {
    define()
  } finally {
    Object.assign(globalThis, { describe, test: realTest, beforeEach, afterEach })
  }
  return tests
}

/** How many of the tests of this name fail. */
export async function failuresOf(name: string, define: () => void): Promise<number> {
  const tests = collect(define).filter((test) => test.name === name)
  if (tests.length === 0) throw new Error(`No test is called ${name}`)
  let failures = 0
  for (const { run } of tests) await run().catch(() => failures++)
  return failures
}
