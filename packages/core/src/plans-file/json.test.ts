import fc from 'fast-check'
import { parseJson } from './json.js'
import { SyntaxMistake } from './source.js'

function outcome(text: string, parse: (json: string) => unknown): unknown {
  try {
    return { value: parse(text) }
  } catch {
    return 'refused'
  }
}

function mistakeIn(text: string): unknown {
  try {
    return parseJson(text)
  } catch (error) {
    expect(error).toBeInstanceOf(SyntaxMistake)
    return error
  }
}

describe('JSON with places', () => {
  test('is what JSON.parse makes of any JSON, however it is laid out', () => {
    fc.assert(
      fc.property(fc.json(), fc.constantFrom(undefined, '\t', ' \r\n '), (text, indent) => {
        const laidOut = JSON.stringify(JSON.parse(text), null, indent)
        expect(parseJson(laidOut).value).toEqual(JSON.parse(laidOut))
      }),
    )
  })

  test('is refused exactly where JSON.parse refuses, for JSON with a character added or replaced', () => {
    const seed = '{"free":{"limit":-1.5e+3,"x":[true,null,"a\\u00e9\\n"]},"b":"unlimited"}'
    const character = fc.constantFrom(...'{}[]:,"\\0-.eE tfn/\n\u0000\u007fé')
    fc.assert(
      fc.property(fc.nat(seed.length), fc.nat(1), character, (at, removed, added) => {
        const text = seed.slice(0, at) + added + seed.slice(at + removed)
        expect(outcome(text, (json) => parseJson(json).value)).toEqual(outcome(text, JSON.parse))
      }),
      { numRuns: 2000 },
    )
  })

  test.each([
    ['', 0, 'Expected a value, found the end.'],
    ['{"a": 1,}', 8, 'Expected a key in double quotes, found `}`.'],
    ['{"a" 1}', 5, 'Expected `:`, found `1`.'],
    ['{"a": 1 "b": 2}', 8, 'Expected `,` or `}`, found `"`.'],
    ['[1, 2', 5, 'Expected `,` or `]`, found the end.'],
    ['{"a": 01}', 7, 'Expected `,` or `}`, found `1`.'],
    ['{"a": "x\n"}', 6, 'Expected a string that ends on its line, without a bad escape, found `"`.'],
    ['{a: 1}', 1, 'Expected a key in double quotes, found `a`.'],
    ['{} 😀', 3, 'Expected nothing more, found `😀`.'],
    ['// no comments\n{}', 0, 'Expected a value, found `/`.'],
    ['{"a": 1, "\\u0061": 2}', 9, 'The key "\\u0061" is there twice.'],
  ])('%j is refused at offset %i: %s', (text, offset, message) => {
    expect(mistakeIn(text)).toMatchObject({ message, offset })
  })

  test.each([
    [['free'], '"free"', '{ "limit"'],
    [['free', 'limit'], '"limit"', '-5'],
    [['pro', 1], '"x"', '"x"'],
  ])('the key and the value at %j are found', (path, key, value) => {
    const text = '{ "free" : { "limit"\t:\n -5 }, "pro": [1, "x"] }'
    expect(parseJson(text).find(path)).toEqual({ key: text.indexOf(key), value: text.indexOf(value) })
  })

  test.each([[['gold']], [['pro', 2]], [['pro', 'limit']], [['pro', 1, 0]]])(
    'nothing is found at %j',
    (path) => {
      expect(parseJson('{ "pro": [1, "x"] }').find(path)).toBeUndefined()
    },
  )

  test('defines the key __proto__, and leaves prototypes alone', () => {
    const { value } = parseJson('{"__proto__": {"limit": 1}}')
    expect(Object.entries(value as object)).toEqual([['__proto__', { limit: 1 }]])
    expect((value as { limit?: number }).limit).toBeUndefined()
  })
})
