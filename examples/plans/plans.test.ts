import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { loadPlans } from '@sluice/core/node'

const here = (file: string): string => join(__dirname, file)

const run = (...args: string[]): Promise<{ stdout: string }> =>
  promisify(execFile)(process.execPath, [here('plans.mjs'), ...args])

describe('the example plans', () => {
  test.each([[[]], [[here('plans.json')]]])(
    'run with %j gives each plan what its file says',
    async (args) => {
      const lines = (await run(...args)).stdout.trim().split('\n')
      expect(lines).toEqual([
        expect.stringMatching(/^free: 3 of 7 sent, the next in \d+ s$/),
        expect.stringMatching(/^pro: 5 of 7 sent, the next in \d+ s$/),
        'enterprise: 7 of 7 sent',
      ])
    },
  )

  test('has the same plans in both formats', async () => {
    expect(await loadPlans(here('plans.yaml'))).toEqual(await loadPlans(here('plans.json')))
  })

  test('ends with the place of a mistake, and no stack', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-example-'))
    const file = join(folder, 'plans.yaml')
    writeFileSync(file, readFileSync(here('plans.yaml'), 'utf8').replace('limit: 1000', 'limit: 1e10'))
    const error = await run(file).then(
      () => undefined,
      (reason) => reason,
    )
    rmSync(folder, { recursive: true })
    expect(error).toMatchObject({ code: 1 })
    expect(error.stderr).toContain(`${file}:13:12: Plan "pro", policy 2: Option \`limit\` is 10000000000.`)
    expect(error.stderr).not.toContain('    at ')
  })
})
