import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type ErrorCode, Limiter, SluiceError } from './index.js'
import { loadPlans } from './node.js'

const folder = mkdtempSync(join(tmpdir(), 'sluice-plans-'))
afterAll(() => rmSync(folder, { recursive: true }))

function write(name: string, text: string | Buffer): string {
  const file = join(folder, name)
  writeFileSync(file, text)
  return file
}

async function failure(file: unknown): Promise<SluiceError> {
  const error = await loadPlans(file as string).then(
    () => undefined,
    (reason) => reason,
  )
  expect(error).toBeInstanceOf(SluiceError)
  return error
}

const json = `{
  "free": { "limit": 100, "window": "1h" },
  "pro": [
    { "name": "burst", "algorithm": "token-bucket", "limit": 50, "window": "1s" },
    { "name": "daily", "algorithm": "fixed-window", "limit": 100000, "window": "1d" }
  ],
  "enterprise": "unlimited"
}`

const yaml = `# Prices of May
free: { limit: 100, window: 1h }
pro:
  - { name: burst, algorithm: token-bucket, limit: 50, window: 1s }
  - &daily
    name: daily
    algorithm: fixed-window
    limit: 100000
    window: 1d
enterprise: unlimited
`

describe('loadPlans', () => {
  test.each([
    ['plans.json', json],
    ['plans.yaml', yaml],
    ['plans.yml', yaml],
    ['PLANS.JSON', json],
    ['byte-order-mark.json', `\uFEFF${json}`],
    ['byte-order-mark.yaml', `\uFEFF${yaml}`],
    ['carriage-returns.yaml', yaml.replaceAll('\n', '\r\n')],
  ])('reads %s into plans that a limiter takes', async (name, text) => {
    const plans = await loadPlans(write(name, text))
    expect(plans).toEqual(JSON.parse(json))
    const limiter = new Limiter({ plans })
    const decision = await limiter.consume({ key: 'a', plan: 'pro' })
    expect(decision.policies.map((policy) => [policy.name, policy.limit])).toEqual([
      ['burst', 50],
      ['daily', 100_000],
    ])
    expect((await limiter.consume({ key: 'a', plan: 'enterprise' })).reason).toBe('unlimited')
  })

  test('takes a file: URL', async () => {
    const url = pathToFileURL(write('with space.json', json))
    expect(Object.keys(await loadPlans(url))).toEqual(['free', 'pro', 'enterprise'])
  })

  test('lets plans of a YAML file share a policy by an alias', async () => {
    const file = write('alias.yaml', 'free: &base { limit: 1, window: 1m }\ntrial: *base\n')
    expect(await loadPlans(file)).toEqual({
      free: { limit: 1, window: '1m' },
      trial: { limit: 1, window: '1m' },
    })
  })

  test.each(['__proto__', 'constructor', 'toString'])('takes %s as a name like any other', async (name) => {
    for (const [file, text] of [
      ['prototype.json', `{ "${name}": { "limit": 1, "window": "1m" } }`],
      ['prototype.yaml', `${name}: { limit: 1, window: 1m }`],
    ] as const) {
      const plans = await loadPlans(write(file, text))
      expect(Object.keys(plans)).toEqual([name])
      expect(Object.getPrototypeOf(plans)).toBe(Object.prototype)
      expect((await new Limiter({ plans }).consume({ key: 'a', plan: name })).limit).toBe(1)
    }
    expect(({} as { limit?: unknown }).limit).toBeUndefined()
  })
})

describe('loadPlans names file, line and column of', () => {
  test.each([
    // Syntax.
    ['an empty JSON file', 'json', '', '1:1', 'Expected a value, found the end.'],
    [
      'a trailing comma',
      'json',
      '{\n  "free": "unlimited",\n}',
      '3:1',
      'Expected a key in double quotes, found `}`.',
    ],
    [
      'a key that is there twice in JSON',
      'json',
      '{\n  "a": "unlimited",\n  "a": "unlimited"\n}',
      '3:3',
      'The key "a" is there twice.',
    ],
    ['a flow map that does not end', 'yaml', 'free: { limit: 1', '1:17', 'Flow map'],
    ['a tab as indentation', 'yaml', 'free:\n\tlimit: 1', '2:1', 'Tabs are not allowed as indentation.'],
    [
      'a key that is there twice in YAML',
      'yaml',
      'a: unlimited\na: unlimited',
      '2:1',
      'Map keys must be unique.',
    ],
    [
      'a number and a text that are one key',
      'yaml',
      '1: unlimited\n"1": unlimited',
      '2:1',
      'Map keys must be unique.',
    ],
    [
      'a key that is a list',
      'yaml',
      'a: unlimited\n? [b]\n: unlimited',
      '2:3',
      'With stringKeys, all keys must be strings.',
    ],
    ['a tag that asks for code', 'yaml', 'a: unlimited\nb: !!js/function "x"', '2:4', 'Unresolved tag'],
    ['a tag of another type', 'yaml', 'a: !!binary aGVsbG8=', '1:4', 'Unresolved tag'],
    ['an alias without an anchor', 'yaml', 'a: unlimited\nb: *base', '2:4', 'There is no anchor &base.'],
    [
      'a second document',
      'yaml',
      'a: unlimited\n---\nb: unlimited',
      '2:1',
      'Source contains multiple documents',
    ],
    // Meaning.
    [
      'no plan in JSON',
      'json',
      '\n{}',
      '1:1',
      'Option `plans` is an object (). Expected an object with at least one plan',
    ],
    ['no plan in YAML', 'yaml', '# nothing yet', '1:1', 'Option `plans` is null.'],
    [
      'a bad limit in JSON',
      'json',
      json.replace('100000', '-5'),
      '5:62',
      'Plan "pro", policy 2: Option `limit` is -5.',
    ],
    [
      'a bad limit in YAML',
      'yaml',
      yaml.replace('100000', '100_000'),
      '8:12',
      'Plan "pro", policy 2: Option `limit` is "100_000".',
    ],
    ['a bad window', 'yaml', yaml.replace('1h', '"10"'), '2:29', 'Plan "free": Option `window` is "10".'],
    [
      'a misspelt option',
      'json',
      json.replace('"limit": 50', '"limt": 50'),
      '4:53',
      'Plan "pro", policy 1: Unknown option `limt`',
    ],
    [
      'a missing limit',
      'json',
      json.replace('"limit": 100,', ''),
      '2:3',
      'Plan "free": Option `limit` is undefined.',
    ],
    [
      'an empty value',
      'yaml',
      yaml.replace('window: 1d', 'window:'),
      '9:12',
      'Plan "pro", policy 2: Option `window` is null.',
    ],
    [
      'two policies of one name',
      'yaml',
      yaml.replace('name: daily', 'name: burst'),
      '6:5',
      'Two policies of one decision are called "burst"',
    ],
    ['a plan that is neither policy nor list', 'yaml', 'free: 5', '1:1', 'Plan "free": Option `plan` is 5.'],
    ['a plan without policies', 'yaml', 'free:\n  []', '1:1', 'Plan "free": Option `plan` is an array of 0.'],
    [
      'a bad name',
      'yaml',
      'a: unlimited\nblå:\n  limit: 1',
      '2:1',
      'Plan "blå": Option `plan name` is "blå".',
    ],
    [
      'a prototype key in a policy',
      'json',
      '{ "a": { "limit": 1, "window": "1m", "__proto__": {} } }',
      '1:38',
      'Unknown option `__proto__`',
    ],
    [
      'a bad limit behind an alias',
      'yaml',
      'a: &base\n  limit: x\n  window: 1m\nb: *base',
      '2:10',
      'Plan "a": Option `limit` is "x".',
    ],
  ])('%s', async (_mistake, extension, text, place, message) => {
    const file = write(`bad.${extension}`, text)
    const error = await failure(file)
    expect(error.code).toBe('SLUICE_BAD_PLANS_FILE' satisfies ErrorCode)
    expect(error.message).toContain(`${file}:${place}: `)
    expect(error.message).toContain(message)
  })

  test('counts lines that end in carriage return and newline, and columns in UTF-16 units', async () => {
    const file = write('places.yaml', 'a: unlimited\r\n# 😀\r\nb: { name: "😀", limit: 1, window: 1m }')
    expect((await failure(file)).message).toContain(`${file}:3:12: Plan "b": Option \`name\``)
  })
})

describe('loadPlans refuses', () => {
  test.each([
    ['plans.toml', 'Option `file` is "plans.toml".'],
    ['plans', 'Option `file` is "plans".'],
    [undefined, 'Option `file` is "undefined".'],
    [new URL('https://example.com/plans.json'), 'Option `file` is "https://example.com/plans.json".'],
  ])('%s, which is not the path of a JSON or YAML file', async (file, message) => {
    const error = await failure(file)
    expect(error.code).toBe('SLUICE_BAD_OPTION')
    expect(error.message).toContain(message)
  })

  test('a file that cannot be read, with the reason', async () => {
    const file = join(folder, 'absent.json')
    const error = await failure(file)
    expect(error).toMatchObject({ code: 'SLUICE_BAD_PLANS_FILE', cause: { code: 'ENOENT' } })
    expect(error.message).toContain(`${file}: The file cannot be read: ENOENT`)
  })

  test('aliases that would grow without end', async () => {
    const levels = Array.from({ length: 9 }, (_, i) => `l${i + 1}: &l${i + 1} [${Array(9).fill(`*l${i}`)}]`)
    const error = await failure(write('laughs.yaml', ['l0: &l0 [x]', ...levels].join('\n')))
    expect(error.code).toBe('SLUICE_BAD_PLANS_FILE')
    expect(error.message).toContain('Excessive alias count')
  })

  test('mistakes with the error of definePlans as the cause', async () => {
    const error = await failure(write('cause.json', json.replace('"1h"', '"10"')))
    expect(error.cause).toMatchObject({ code: 'SLUICE_BAD_DURATION', path: ['free', 'window'] })
  })

  test('YAML without its package, naming the command that installs it', async () => {
    jest.doMock('yaml', () => {
      throw new Error("Cannot find package 'yaml'")
    })
    const error = await failure(write('plans.yaml', yaml))
    jest.dontMock('yaml')
    expect(error.code).toBe('SLUICE_MISSING_PEER')
    expect(error.message).toContain('npm install yaml')
  })
})
