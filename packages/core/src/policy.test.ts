import { errorOf } from '../test/error-of.js'
import { type Policy, resolvePolicy } from './policy.js'

const minute = { limit: 100, window: '1m' } as const

/** Values that no number of units can be; each with the way a message shows it. */
const notUnits: [unknown, string][] = [
  [undefined, 'undefined'],
  [null, 'null'],
  [Number.NaN, 'NaN'],
  [Number.POSITIVE_INFINITY, 'Infinity'],
  [-1, '-1'],
  [2.5, '2.5'],
  [1e9 + 1, '1000000001'],
  [2 ** 53 + 1, '9007199254740992'],
  ['10', '"10"'],
  ['abc', '"abc"'],
  [10n, '10n'],
  [true, 'true'],
  [[100], 'an array of 1'],
  [{}, 'an object ()'],
]

async function refuses(policy: unknown, code: string, ...parts: string[]) {
  const error = await errorOf(() => resolvePolicy(policy as Policy))
  expect(error.code).toBe(code)
  for (const part of parts) expect(error.message).toContain(part)
}

describe('a policy', () => {
  it.each(notUnits)('refuses the limit %p (B84, B146)', async (limit, shown) => {
    await refuses({ limit, window: '1m' }, 'SLUICE_BAD_OPTION', '`limit`', shown, 'from 0 to 1,000,000,000')
  })

  it.each(notUnits.filter(([burst]) => burst !== undefined && burst !== null))(
    'refuses the burst %p',
    async (burst, shown) => {
      for (const algorithm of ['token-bucket', 'gcra']) {
        const policy = { ...minute, algorithm, burst }
        await refuses(policy, 'SLUICE_BAD_OPTION', '`burst`', shown, 'from 1 to 1,000,000,000')
      }
    },
  )

  it('refuses the burst 0, with which nothing could ever pass', async () => {
    await refuses({ ...minute, algorithm: 'gcra', burst: 0 }, 'SLUICE_BAD_OPTION', '`burst`', '0', 'from 1')
  })

  it('refuses a burst that takes more than 100 years to refill', async () => {
    const policy = { limit: 1, window: '400d', algorithm: 'gcra', burst: 100 }
    await refuses(policy, 'SLUICE_BAD_OPTION', '`burst`', '100', 'within 100 years')
  })

  it.each([undefined, null, Number.NaN, 0, -1, 0.1, 1e21, '10', 10n])(
    'refuses the window %p (B84, B146)',
    async (window) => {
      await refuses({ limit: 1, window }, 'SLUICE_BAD_DURATION', '`window`', 'Expected')
    },
  )

  it.each([400 * 86_400_000 + 1, '401d', '2y'])('refuses the window %p, above 400 days', async (window) => {
    await refuses({ limit: 1, window }, 'SLUICE_BAD_OPTION', '`window`', String(window), 'at most 400 days')
  })

  it.each([
    ['shadow', 1, '1', 'true or false'],
    ['shadow', 'true', '"true"', 'true or false'],
    ['name', '', '""', '1 to 64 printable ASCII'],
    ['name', 'x'.repeat(65), '"xxx', '1 to 64 printable ASCII'],
    ['name', 'naïve', '"naïve"', '1 to 64 printable ASCII'],
    ['name', 'a\nb', '"a\\nb"', '1 to 64 printable ASCII'],
    ['name', 7, '7', '1 to 64 printable ASCII'],
    ['algorithm', 'sliding', '"sliding"', 'sliding-window-counter'],
    ['algorithm', '__proto__', '"__proto__"', 'fixed-window'],
    ['algorithm', 'constructor', '"constructor"', 'fixed-window'],
    ['algorithm', null, 'null', 'fixed-window'],
    ['algorithm', ['gcra'], 'an array of 1', 'gcra'],
  ])('refuses the option %s of %p', async (option, value, shown, mend) => {
    await refuses({ ...minute, [option]: value }, 'SLUICE_BAD_OPTION', `\`${option}\``, shown, mend)
  })

  it('refuses an alignment that it does not know', async () => {
    const policy = { ...minute, algorithm: 'fixed-window', align: 'monday' }
    await refuses(policy, 'SLUICE_BAD_OPTION', '`align`', '"monday"', "'epoch' or 'first-request'")
  })

  it.each([
    [{ limt: 1 }, 'limt'],
    [{ burst: 5 }, 'burst'],
    [{ algorithm: 'gcra', align: 'epoch' }, 'align'],
    [{ algorithm: 'fixed-window', burst: 5 }, 'burst'],
  ])('refuses the options %p, of which one means nothing to its algorithm', async (extra, option) => {
    await refuses({ ...minute, ...extra }, 'SLUICE_UNKNOWN_OPTION', `\`${option}\``, 'Known options: name')
  })

  it.each([
    [undefined, 'undefined'],
    [null, 'null'],
    [100, '100'],
    ['100/m', '"100/m"'],
  ])('cannot be %p', async (policy, shown) => {
    await refuses(policy, 'SLUICE_BAD_OPTION', '`policy`', shown, '{ limit: 100, window: "1m" }')
  })

  it.each([
    ['the least', { limit: 0, window: 1 }],
    ['the largest', { limit: 1e9, window: '400d' }],
    ['the longest name', { ...minute, name: '~'.repeat(64) }],
  ])('takes %s', (_, policy) => {
    expect(resolvePolicy(policy)).toMatchObject({ limit: policy.limit, shadow: false })
  })

  it.each<[Policy, string, string]>([
    [minute, '100-per-1m', '100-per-1m:sc60000'],
    [{ ...minute, algorithm: 'fixed-window' }, '100-per-1m', '100-per-1m:fw60000'],
    [{ ...minute, algorithm: 'token-bucket' }, '100-per-1m', '100-per-1m:tb60000'],
    [{ ...minute, algorithm: 'gcra' }, '100-per-1m', '100-per-1m:gc60000'],
    [{ limit: 5, window: 5_400_000 }, '5-per-90m', '5-per-90m:sc5400000'],
    [{ ...minute, name: 'per user:1' }, 'per user:1', 'per%20user%3A1:sc60000'],
    [{ ...minute, algorithm: 'sliding-window-ring' } as const, '100-per-1m', '100-per-1m:sr60000-30'],
    [
      { ...minute, algorithm: 'sliding-window-ring', slices: 12 } as const,
      '100-per-1m',
      '100-per-1m:sr60000-12',
    ],
  ])('%j is called %s and ends its keys in %s', (policy, name, keySuffix) => {
    expect(resolvePolicy(policy)).toMatchObject({ name, keySuffix })
  })

  it('that is known by its place still says its numbers', () => {
    expect(resolvePolicy(minute, '2')).toMatchObject({ name: '100-per-1m', keySuffix: '2:sc60000' })
  })

  it.each([
    ['its limit', { ...minute, algorithm: 'gcra' as const }, 100],
    ['the option', { ...minute, algorithm: 'gcra' as const, burst: 7 }, 7],
    ['nothing when the limit is 0', { limit: 0, window: '1m', algorithm: 'gcra' as const }, 0],
  ])('lets pass at once %s', (_, policy, burst) => {
    expect(resolvePolicy(policy).burst).toBe(burst)
  })

  it('is read once: changing the object later changes nothing', () => {
    const options = { ...minute, algorithm: 'gcra' as const, burst: 7 }
    const policy = resolvePolicy(options)
    options.burst = 1000
    expect(policy.withLimit(50).burst).toBe(7)
    expect(Object.isFrozen(policy)).toBe(true)
  })

  it('with another limit keeps its name and key', () => {
    const policy = resolvePolicy(minute)
    expect(policy.withLimit(5)).toMatchObject({ name: '100-per-1m', keySuffix: policy.keySuffix, limit: 5 })
  })
})
