import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'

interface Row {
  readonly strategy: string
  readonly limit: number
  readonly admitted: number
  readonly retries: number
  readonly withoutExpiry: number
}

describe('the example race-conditions', () => {
  let rows: ReadonlyMap<string, Row>

  beforeAll(async () => {
    const program = join(__dirname, 'race-conditions.mjs')
    const { stdout } = await promisify(execFile)(process.execPath, [program, '--json'])
    rows = new Map((JSON.parse(stdout) as Row[]).map((row) => [row.strategy, row]))
  }, 60_000)

  const row = (strategy: string): Row => rows.get(strategy) as Row

  test('shows that a counter in each process multiplies the limit', () => {
    const { admitted, limit } = row('counter in each process')
    expect(admitted).toBe(4 * limit)
  })

  test('shows that read, then write admits more than the limit', () => {
    const { admitted, limit } = row('read, then write')
    expect(admitted).toBeGreaterThan(limit)
  })

  test('shows that WATCH and MULTI keeps the limit, at the price of retries', () => {
    const { admitted, limit, retries } = row('WATCH and MULTI')
    expect(admitted).toBe(limit)
    expect(retries).toBeGreaterThan(0)
  })

  test('shows that INCR, then EXPIRE leaves a key for ever when a process dies in between', () => {
    expect(row('INCR, then EXPIRE').withoutExpiry).toBe(1)
  })

  test('shows that one script admits exactly the limit, and leaves no key without an expiry', () => {
    const { admitted, limit, withoutExpiry } = row('Sluice (one script)')
    expect({ admitted, withoutExpiry }).toEqual({ admitted: limit, withoutExpiry: 0 })
  })
})
