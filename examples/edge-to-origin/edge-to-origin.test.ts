import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'

test('the example edge-to-origin sheds 95 % of the excess of a tenfold flood at the edge, and serves exactly the limit', async () => {
  const program = join(__dirname, 'edge-to-origin.mjs')
  const { stdout } = await promisify(execFile)(process.execPath, [program])
  const lines = stdout.trim().split('\n')
  expect(lines).toHaveLength(3)
  for (const line of lines) {
    const [, sent, arrived, served, shed, customer, asked] = (line.match(/[\d.]+/g) ?? []).map(Number)
    expect({ sent, served, customer, asked }).toEqual({ sent: 1000, served: 100, customer: 10, asked: 10 })
    // Four locations and one.
    expect(arrived).toBeLessThanOrEqual(500)
    expect(arrived).toBeGreaterThanOrEqual(100)
    expect(shed).toBeGreaterThanOrEqual(95)
  }
}, 60_000)
