const longestWaitMs = 10_000

/** Waits for other parts of the process until something holds. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = performance.now() + longestWaitMs
  while (!(await holds())) {
    if (performance.now() > endMs) throw new Error(`Not within ${longestWaitMs} ms: ${holds}`)
    await turns(1)
  }
}

/** Lets the event loop turn a few times. */
export async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise(setImmediate)
}
