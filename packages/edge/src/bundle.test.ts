import { bundleForEdge } from '../test/bundle.js'

test.each([
  '@sluice/core',
  '@sluice/core/user',
  '@sluice/edge',
  '@sluice/edge/cloudflare',
  '@sluice/edge/cloudfront',
  '@sluice/edge/feed',
  '@sluice/redis/rest',
])('%s runs without Node.js: it imports none of its modules and uses none of its globals', async (name) => {
  const { code, needs } = await bundleForEdge(`export * from '${name}'`)
  expect(code.length).toBeGreaterThan(10_000)
  expect(needs).toEqual([])
})

test.each([
  ['a module', `import 'node:fs'`, 'node:fs'],
  ['a module by its old name', `export { join } from 'path'`, 'path'],
  ['a global', 'export const now = () => process.hrtime()', 'process'],
  ['the timers', 'setImmediate(() => {})', 'setImmediate'],
])('%s of Node.js is found', async (_, code, needed) => {
  expect((await bundleForEdge(code)).needs).toEqual([needed])
})
