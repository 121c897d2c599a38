import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { algorithmNames } from '@sluice/core'

const root = join(__dirname, '..')

describe('the chart of the algorithms', () => {
  test('is what scripts/chart.mjs draws', () => {
    const draw = () => execFileSync(process.execPath, [join(root, 'scripts/chart.mjs'), '--check'])
    expect(draw).not.toThrow()
  })

  test('has a panel for each algorithm', () => {
    const svg = readFileSync(join(root, 'docs/algorithms.svg'), 'utf8')
    const titles = [...svg.matchAll(/font-weight="600">([^<]+)</g)].map(([, title]) => title)
    expect(titles).toEqual(algorithmNames)
  })
})
