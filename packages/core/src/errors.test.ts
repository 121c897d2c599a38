import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { badOption, errorCodes, refuseUnknownOptions, SluiceError, show } from './errors.js'

const packages = join(__dirname, '..', '..')
const errorsPage = readFileSync(join(packages, '..', 'docs', 'errors.md'), 'utf8')

/** The text of every source of the packages, without tests and the list of codes itself. */
function sources(): string {
  return readdirSync(packages, { withFileTypes: true, recursive: true })
    .filter((file) => file.isFile() && /(?<!\.test)\.ts$/.test(file.name))
    .filter((file) => !/node_modules|dist/.test(file.parentPath))
    .map((file) => readFileSync(join(file.parentPath, file.name), 'utf8'))
    .join('\n')
    .replace(/errorCodes = \[[^\]]*\]/, '')
}

describe('the error codes', () => {
  it('are sorted and listed once', () => {
    expect(errorCodes).toEqual([...new Set(errorCodes)].sort())
  })

  it('are the sections of docs/errors.md, no more and no fewer', () => {
    const sections = [...errorsPage.matchAll(/^## (.+)$/gm)].map((match) => match[1])
    expect(sections).toEqual(errorCodes)
  })

  it.each(errorCodes)(
    'have in docs/errors.md a cause, a mend and the version that brought them: %s',
    (code) => {
      const section = errorsPage.split(/^## /m).find((text) => text.startsWith(`${code}\n`))
      expect(section).toMatch(/^Since \d+\.\d+\.\d+\./m)
      expect(section).toMatch(/^\*\*Why\.\*\* /m)
      expect(section).toMatch(/^\*\*Mend\.\*\* /m)
    },
  )

  it('are each raised somewhere', () => {
    const raised = sources()
    expect(errorCodes.filter((code) => !raised.includes(`'${code}'`))).toEqual([])
  })
})

describe('a SluiceError', () => {
  it('carries its code, and ends its message with it', () => {
    const cause = new Error('cause')
    const error = new SluiceError('SLUICE_BAD_KEY', 'The key is 1', { cause })
    expect(error.code).toBe('SLUICE_BAD_KEY')
    expect(error.message).toBe('The key is 1 (SLUICE_BAD_KEY)')
    expect(error.name).toBe('SluiceError')
    expect(error.cause).toBe(cause)
    expect(error).toBeInstanceOf(Error)
  })

  it('is recognised when another copy of the package made it', () => {
    let other: unknown
    jest.isolateModules(() => {
      const copy = require('./errors.js') as typeof import('./errors.js')
      expect(copy.SluiceError).not.toBe(SluiceError)
      other = new copy.SluiceError('SLUICE_BAD_KEY', '')
    })
    expect(other instanceof SluiceError).toBe(true)
  })

  it.each([[new Error('x')], [{ code: 'SLUICE_BAD_KEY' }], [null], [undefined], ['SLUICE_BAD_KEY']])(
    'is not %p',
    (value) => {
      expect((value as unknown) instanceof SluiceError).toBe(false)
    },
  )
})

describe('a value in a message', () => {
  it.each([
    ['text', '"text"'],
    ['x'.repeat(61), `"${'x'.repeat(60)}…"`],
    [10n, '10n'],
    [Number.NaN, 'NaN'],
    [undefined, 'undefined'],
    [null, 'null'],
    [Symbol('s'), 'Symbol(s)'],
    [[1, 2], 'an array of 2'],
    [{ a: 1, b: 2 }, 'an object (a, b)'],
    [Object.create(null), 'an object ()'],
    [function named() {}, 'function named'],
    [() => {}, 'function (anonymous)'],
  ])('is short and never throws: %p', (value, text) => {
    expect(show(value)).toBe(text)
  })
})

describe('a bad option', () => {
  it('is named with its value and what is expected', () => {
    const error = badOption('limit', -1, 'a whole number')
    expect(error.code).toBe('SLUICE_BAD_OPTION')
    expect(error.message).toBe('Option `limit` is -1. Expected a whole number. (SLUICE_BAD_OPTION)')
  })

  it('that nobody knows is named with those that are known', () => {
    const refuse = () => refuseUnknownOptions('a limiter', { limt: 1 }, ['limit', 'window'])
    expect(refuse).toThrow(
      'Unknown option `limt` in a limiter. Known options: limit, window. (SLUICE_UNKNOWN_OPTION)',
    )
    expect(() => refuseUnknownOptions('a limiter', { limit: 1 }, ['limit'])).not.toThrow()
  })
})
