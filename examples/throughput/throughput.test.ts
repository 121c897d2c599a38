import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'

interface Row {
  readonly who: string
  readonly way: string
  readonly admitted: number
  readonly 'store calls': number
}

test('the example throughput admits the same whichever way it asks, and asks less and less', async () => {
  const program = join(__dirname, 'throughput.mjs')
  const { stdout } = await promisify(execFile)(process.execPath, [program, '--json'], { env: process.env })
  const rows: readonly Row[] = JSON.parse(stdout)
  const [customer, attacker] = [rows.slice(0, 3), rows.slice(3)]
  expect(customer.map(({ admitted }) => admitted)).toEqual([2000, 2000, 2000])
  expect(attacker.map(({ admitted }) => admitted)).toEqual([100, 100, 100])
  const calls = (of: readonly Row[]): number[] => of.map((row) => row['store calls'])
  expect(calls(customer).slice(0, 2)).toEqual([2000, 2000])
  expect(calls(customer)[2]).toBeLessThan(200)
  expect(calls(attacker)[0]).toBe(2000)
  expect(calls(attacker)[1]).toBeLessThan(400)
})
