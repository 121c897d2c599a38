import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'

/** Faults that limiters are known for, which Sluice must not have. A test's name ends with the ids of those it guards. */
const faults: Readonly<Record<string, string>> = {
  B01: 'trust in every proxy',
  B04: 'mapped IPv4 as one subnet',
  B06: 'whole IPv6 address as key',
  B07: 'port in the address',
  B10: 'junk for an address',
  B11: 'fallback to untrusted headers',
  B13: 'translated addresses merged',
  B14: 'key parts without separator',
  B16: 'reserved keys within reach',
  B18: 'credential spelled otherwise',
  B20: 'user agent in the key',
  B23: 'account spelled otherwise',
  B24: 'keys of any length',
  B26: 'lock extended by refusals',
  B29: 'route spelled otherwise',
  B32: 'method overridden later',
  B34: 'HEAD charged twice',
  B35: 'unknown routes uncounted',
  B37: 'route limit replaces the global',
  B39: 'preflights charged, CORS lost',
  B41: 'nested mounts charge twice',
  B43: 'doubly registered route charged twice',
  B45: 'second registration ignored',
  B47: 'skip of one name only',
  B49: 'headers lost by a throw',
  B50: 'refusal becomes an error',
  B52: 'answered twice',
  B55: 'key function that fails',
  B57: 'hook used before ready',
  B59: 'decision not awaited',
  B62: 'check and charge apart',
  B64: 'equal times collapse',
  B66: 'edge of the window',
  B68: 'denial that charges',
  B70: 'window before ignored',
  B73: 'second burst after idling',
  B75: 'clock of a client',
  B77: 'overflow after a long silence',
  B79: 'spacing rounded away',
  B81: 'refill as a whole',
  B84: 'fractions and huge numbers',
  B85: 'negative grant on debt',
  B87: 'earlier policies charged in vain',
  B89: 'whole window after a denial',
  B91: 'script lost by the server',
  B94: 'keys the script hides',
  B95: 'arguments taken for keys',
  B97: 'prefix applied unevenly',
  B98: 'decisions read from replicas',
  B99: 'old master kept after failover',
  B103: 'charged late or twice',
  B105: 'key without expiry',
  B107: 'expiry in the wrong unit',
  B109: 'live keys evicted',
  B111: 'unhandled connection errors',
  B113: 'limiters that share a key',
  B115: 'failure taken for allowance',
  B117: 'fallback multiplies the limit',
  B119: 'late store failure breaks reply',
  B122: 'synchronising charges again',
  B123: 'lease outlives its window',
  B125: 'leases lost in a crash',
  B127: 'failed plan lookup downgrades',
  B128: 'slots of aborted requests',
  B130: 'slots of stalled readers',
  B132: 'refusals counted as failures',
  B134: 'guesses before the outcome',
  B136: 'waits rounded down',
  B138: 'wait of zero or less',
  B140: 'nested headers overwritten',
  B142: 'units of reset mixed',
  B144: 'quota in shared caches',
  B146: 'limit that is no number',
  B148: 'zero means unlimited',
  B150: 'timers that overflow',
  B152: 'unknown plan fails',
  B154: 'changed limit ignored',
  B156: 'changed limit starts afresh',
  B158: 'visitors never forgotten',
  B160: 'full table cleared',
  B162: 'timers of a shared store',
  B164: 'timer of a former entry',
  B167: 'a count for each worker',
}

/** Faults without a test, and why. */
const exceptions: Readonly<Record<string, string>> = {
  B128: 'there is no option that limits how many requests run at once',
  B130: 'there is no option that limits how many requests run at once',
}

const root = join(__dirname, '..')
const sourceFolders = ['packages', 'examples', 'scripts']

/** The files that define tests: those of jest, and the contracts that others run. */
function testFiles(): string[] {
  return sourceFolders
    .flatMap((folder) => readdirSync(join(root, folder), { withFileTypes: true, recursive: true }))
    .filter((file) => file.isFile() && !/node_modules|\/dist/.test(file.parentPath))
    .map((file) => join(file.parentPath, file.name))
    .filter((file) => file.endsWith('.test.ts') || /packages\/testing\/src\/.+\.ts$/.test(file))
}

/** The names of the tests of a file, as they are written: `test('name', …)`, `it.each(rows)('name %s', …)`. */
function testNames(file: string): string[] {
  const names: string[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && /^(test|it)\b/.test(node.expression.getText())) {
      const [name] = node.arguments
      if (name && ts.isStringLiteralLike(name)) names.push(name.text)
      if (name && ts.isTemplateExpression(name)) names.push(name.getText().slice(1, -1))
    }
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true))
  return names
}

/** `… B62`, `… B62 B64`, `… (B62, B64)`. */
function idsOf(name: string): string[] {
  const ending = /(?:[\s(,]+B\d+)+\)?$/.exec(name)?.[0] ?? ''
  return ending.match(/B\d+/g) ?? []
}

describe('known faults', () => {
  const files = testFiles()
  const tested = new Set(files.flatMap(testNames).flatMap(idsOf))

  test('are looked for in the tests of every package', () => {
    const found = (name: string): boolean => files.some((file) => file.includes(`/packages/${name}/`))
    expect(readdirSync(join(root, 'packages')).filter((name) => !found(name))).toEqual([])
  })

  test('each have a test or a reason why not, and not both', () => {
    const ids = Object.keys(faults)
    expect({
      neither: ids.filter((id) => !tested.has(id) && !(id in exceptions)),
      both: ids.filter((id) => tested.has(id) && id in exceptions),
    }).toEqual({ neither: [], both: [] })
  })

  test('are the only ids that tests and reasons name', () => {
    expect([...tested, ...Object.keys(exceptions)].filter((id) => !(id in faults))).toEqual([])
  })
})

test.each([
  ['counts (B62, B64)', ['B62', 'B64']],
  ['counts B62', ['B62']],
  ['counts B62 B64', ['B62', 'B64']],
  ['counts B62 and more', []],
  ['counts AB62', []],
])('the ids at the end of %j are %j', (name, ids) => {
  expect(idsOf(name)).toEqual(ids)
})
