import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(__dirname, '../..')

const simulate = (...args: string[]) => {
  return spawnSync(process.execPath, [join(__dirname, 'main.mjs'), ...args], { encoding: 'utf8' })
}

test('a small simulation shows what must hold, and the same for the same seed', () => {
  const [first, again, other] = [simulate('--tiny'), simulate('--tiny'), simulate('--tiny', '--seed', '2')]
  expect(first).toMatchObject({ status: 0, stderr: '' })
  expect(first.stdout).toMatch(/^\| 100 \| 50 \| (99|100) % \|/m)
  expect(again.stdout).toBe(first.stdout)
  expect(other).toMatchObject({ status: 0, stderr: '' })
  expect(other.stdout).not.toBe(first.stdout)
})

test('the chart has a panel for each limit of the table', () => {
  const [table, chart] = ['md', 'svg'].map((end) =>
    readFileSync(join(root, `docs/simulation.${end}`), 'utf8'),
  )
  const limits = [...(table ?? '').matchAll(/^\| ([\d,]+) \| 1,000 \|/gm)].map(([, limit]) => limit)
  const titles = [...(chart ?? '').matchAll(/font-weight="600">([\d,]+) a minute</g)].map(
    ([, title]) => title,
  )
  expect(titles).toHaveLength(5)
  expect(titles).toEqual(limits)
})
