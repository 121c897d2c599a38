import { errorOf } from '../test/error-of.js'
import { definePlans, type Plan } from './plans.js'

const policy = { limit: 1, window: '1m' }

describe('plans', () => {
  it.each([
    [undefined, 'undefined'],
    [null, 'null'],
    [{}, 'an object ()'],
    [[policy], 'an array of 1'],
    ['free', '"free"'],
  ])('cannot be %p', async (plans, shown) => {
    const error = await errorOf(() => definePlans(plans as unknown as Record<string, Plan>))
    expect(error.code).toBe('SLUICE_BAD_OPTION')
    expect(error.message).toContain(`\`plans\` is ${shown}`)
    expect(error.message).toContain('at least one plan')
  })

  it.each<[string, unknown, string, string, string]>([
    [
      'a bad limit',
      { limit: Number.NaN, window: '1m' },
      'SLUICE_BAD_OPTION',
      '`limit` is NaN',
      'whole number',
    ],
    ['a bad window', { limit: 1, window: '10' }, 'SLUICE_BAD_DURATION', '`window` is "10"', "'15m'"],
    ['an unknown option', { ...policy, limt: 1 }, 'SLUICE_UNKNOWN_OPTION', '`limt`', 'Known options'],
    ['no policy', [], 'SLUICE_BAD_OPTION', '`plan` is an array of 0', "'unlimited'"],
    ['a word', 'infinite', 'SLUICE_BAD_OPTION', '`plan` is "infinite"', "'unlimited'"],
    ['nothing', undefined, 'SLUICE_BAD_OPTION', '`plan` is undefined', "'unlimited'"],
    ['null', null, 'SLUICE_BAD_OPTION', '`policy` is null', 'an object'],
    ['a list with null', [null], 'SLUICE_BAD_OPTION', '`policy` is null', 'an object'],
    [
      'two of a name',
      [
        { ...policy, name: 'a' },
        { ...policy, name: 'a' },
      ],
      'SLUICE_DUPLICATE_POLICY',
      '"a"',
      'own `name`',
    ],
    ['two alike', [policy, policy], 'SLUICE_DUPLICATE_POLICY', '"1-per-1m"', 'own `name`'],
    [
      'a name and its place',
      [policy, { ...policy, limit: 2, name: '1' }],
      'SLUICE_DUPLICATE_POLICY',
      '"1"',
      'own `name`',
    ],
  ])('name the plan that has %s', async (_, plan, code, what, mend) => {
    const error = await errorOf(() => definePlans({ free: policy, pro: plan as Plan }))
    expect(error.code).toBe(code)
    expect(error.message).toContain('Plan "pro"')
    expect(error.message).toContain(what)
    expect(error.message).toContain(mend)
    expect(error.message.match(/\(SLUICE_/g)).toHaveLength(1)
  })

  it('refuse a name that is not printable ASCII', async () => {
    const error = await errorOf(() => definePlans({ 'frée\n': policy }))
    expect(error.code).toBe('SLUICE_BAD_OPTION')
    expect(error.message).toContain('`plan name`')
  })

  it('are read once: changing the object later changes nothing', () => {
    const plans = definePlans({ free: policy })
    expect(Object.isFrozen(plans)).toBe(true)
    expect(plans.free).toBe(policy)
  })
})
