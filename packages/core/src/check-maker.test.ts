import { CheckMaker } from './check-maker.js'
import { resolvePolicy } from './policy.js'

describe('the checks of a request', () => {
  const policies = [
    resolvePolicy({ limit: 5, window: '1m' }),
    resolvePolicy({ name: 'daily', limit: 100, window: '1d' }),
  ]

  it('ask the same cost of each policy, under keys that their parts make up', () => {
    const checks = new CheckMaker('api').make(policies, 'ip:203.0.113.77', 3)
    expect(checks).toMatchObject([
      { key: '1:{ip:203.0.113.77}:api:5-per-1m:sc60000', policy: policies[0], least: 3, most: 3 },
      { key: '1:{ip:203.0.113.77}:api:daily:sc86400000', policy: policies[1], least: 3, most: 3 },
    ])
    for (const { key, owner, tail } of checks) expect(`1:{${owner}${tail}`).toBe(key)
  })
})
