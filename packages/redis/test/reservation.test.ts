import { type ChildProcess, fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Algorithm, Policy } from '@sluice/core'
import { clientOf, limiter, open } from './harness.js'

const url = process.env.REDIS_URL as string
const processes = 4
const groups = 100
const groupSize = 5
const asked = processes * groups * groupSize

interface Result {
  readonly admitted: number
  readonly leased: number
  readonly degraded: number
}

/** Lets all processes ask at once, each of which then gives back what it holds; the sums of what they saw. */
async function run(policy: Policy, keyPrefix: string): Promise<Result> {
  const task = JSON.stringify({ url, keyPrefix, policy, groups, groupSize })
  const start = async (): Promise<ChildProcess> => {
    const worker = fork(join(__dirname, 'reservation-worker.mjs'), [task])
    await once(worker, 'message')
    return worker
  }
  const workers = await Promise.all(Array.from({ length: processes }, start))
  const results: Result[] = await Promise.all(
    workers.map(async (worker) => {
      const result = once(worker, 'message')
      worker.send('go')
      return (await result)[0]
    }),
  )
  const sum = (name: keyof Result): number => results.reduce((total, result) => total + result[name], 0)
  return { admitted: sum('admitted'), leased: sum('leased'), degraded: sum('degraded') }
}

/** How many more pass under the policy, without leases. */
async function left(policy: Policy, keyPrefix: string): Promise<number> {
  const store = open(clientOf({ url }, { keyPrefix }))
  const another = limiter(store, { name: 'leased', ...policy, reserve: false })
  const { allowed, remaining } = await another.peek({ key: 'shared' })
  return allowed ? remaining + 1 : 0
}

describe(`${processes} processes that lease from one server`, () => {
  test.each<[Algorithm, string, number]>([
    ['fixed-window', 'below', 2 * asked],
    ['fixed-window', 'above', asked / 2],
    ['sliding-window-counter', 'below', 2 * asked],
    ['sliding-window-counter', 'above', asked / 2],
    ['sliding-window-ring', 'below', 2 * asked],
    ['sliding-window-ring', 'above', asked / 2],
  ])(
    '%s, asked for what is %s the limit, admits no more than it, and once they have closed the rest is there',
    async (algorithm, _, limit) => {
      const policy: Policy = { algorithm, limit, window: '300d', reserve: { max: 20 } }
      const keyPrefix = `test:${randomUUID()}:`
      const { admitted, leased, degraded } = await run(policy, keyPrefix)
      expect(degraded).toBe(0)
      expect(leased).toBeGreaterThan(asked / 4)
      expect(admitted).toBeLessThanOrEqual(Math.min(asked, limit))
      // At the end the store may have nothing left while others hold something.
      expect(admitted).toBeGreaterThanOrEqual(Math.min(asked, limit - processes * 20))
      expect(await left(policy, keyPrefix)).toBe(limit - admitted)
    },
  )
})
