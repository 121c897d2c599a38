import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'

interface Answer {
  readonly phase: 'warm-up' | 'before' | 'stopping' | 'down' | 'starting' | 'after'
  readonly path: string
  readonly status: number
  readonly quota: string | null
  readonly degraded: boolean
  readonly retryAfter: string | null
  readonly problem?: string
}

describe('the example failure-modes', () => {
  const routes = ['/', '/login', '/search']
  let answers: readonly Answer[]
  let log: readonly string[]

  beforeAll(async () => {
    const program = join(__dirname, 'failure-modes.mjs')
    const options = { env: { ...process.env, TIMEOUT_MS: '5000' }, maxBuffer: 2 ** 24 }
    const { stdout } = await promisify(execFile)(process.execPath, [program, '2', '--json'], options)
    ;({ answers, log } = JSON.parse(stdout))
  }, 60_000)

  const during = (phase: Answer['phase'], path: string): Answer[] =>
    answers.filter((answer) => answer.phase === phase && answer.path === path)
  const statuses = (of: readonly Answer[]): number[] => [...new Set(of.map(({ status }) => status))].sort()

  test.each(routes)('serves %s from Redis before and after, and all of it', (path) => {
    for (const phase of ['before', 'after'] as const) {
      const of = during(phase, path)
      expect(of).toHaveLength(40)
      expect(of).toEqual(of.map((answer) => ({ ...answer, status: 200, degraded: false })))
    }
  })

  test('serves the fail-open route without Redis, uncounted', () => {
    const down = during('down', '/')
    expect(down).toHaveLength(40)
    expect(down).toEqual(down.map((answer) => ({ ...answer, status: 200, degraded: true, quota: null })))
    expect(statuses(answers.filter(({ path }) => path === '/'))).toEqual([200])
  })

  test('refuses the fail-closed route without Redis, with 503, Retry-After and problem details', () => {
    const down = during('down', '/login')
    expect(down).toHaveLength(40)
    expect(down).toEqual(
      down.map((answer) => ({
        ...answer,
        status: 503,
        degraded: true,
        quota: null,
        retryAfter: '1',
        problem: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
      })),
    )
    const uncounted = answers.filter(({ path, degraded }) => path === '/login' && degraded)
    expect(statuses(uncounted)).toEqual([503])
  })

  test('serves the degrading route its share of the limit without Redis, then 429', () => {
    const degraded = answers.filter((answer) => answer.path === '/search' && answer.degraded)
    expect(statuses(degraded)).toEqual([200, 429])
    expect(degraded.filter(({ status }) => status === 200)).toHaveLength(20)
    expect(new Set(degraded.map(({ quota }) => quota?.match(/;q=(\d+)/)?.[1]))).toEqual(new Set(['20']))
    expect(during('down', '/search').every((answer) => answer.degraded)).toBe(true)
  })

  test('says once that Redis is down, with the cause, and once that it is up', () => {
    expect(log).toEqual([
      expect.stringMatching(/^sluice: the store of "pages", "login", "search" is down: .+/),
      expect.stringMatching(
        /^sluice: the store of "pages", "login", "search" is up again after \d+ ms, in which \d+ requests/,
      ),
    ])
  })
})
