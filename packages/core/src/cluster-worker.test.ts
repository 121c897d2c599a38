import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'

const program = join(__dirname, '../test/cluster-workers.mjs')

test('each worker of a cluster that counts in memory warns once that it admits the limit for itself B167', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [program])
  const [primary, ...workers] = JSON.parse(stdout) as { admitted: number; warnings: string[] }[]
  expect(primary).toEqual({ admitted: 10, warnings: [] })
  expect(workers).toHaveLength(4)
  for (const { admitted, warnings } of workers) {
    expect(admitted).toBe(10)
    expect(warnings).toEqual([expect.stringMatching(/"default".*shared `store`.*SLUICE_MEMORY_PER_WORKER/)])
  }
})
