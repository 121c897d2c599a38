import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { encodeKey, encodeName, hash } from './key.js'

const sha256 = (text: string) => createHash('sha256').update(text).digest('base64url')

describe('the encoding of a key', () => {
  it.each([
    ['user:42', 'user:42'],
    ['ip:2001:db8::', 'ip:2001:db8::'],
    ['AZaz09_.:@-', 'AZaz09_.:@-'],
    ['', '%'],
    ['%', '%25'],
    ['%25', '%2525'],
    ['%h', '%25h'],
    ['a b', 'a%20b'],
    ['}', '%7D'],
    ['{x}:y', '%7Bx%7D:y'],
    ['a/b', 'a%2Fb'],
    ['*', '%2A'],
    ['a\0\r\n', 'a%00%0D%0A'],
    ['\x7f\x80', '%7F%C2%80'],
    ['é', '%C3%A9'],
    ['€', '%E2%82%AC'],
    ['😀', '%F0%9F%98%80'],
    ['\ud800', '%uD800'],
    ['\udfff', '%uDFFF'],
    ['a\ud83db', 'a%uD83Db'],
    ['\ude00\ud83d', '%uDE00%uD83D'],
    ['\ufffd', '%EF%BF%BD'],
  ])('writes %j as %s', (key, encoded) => {
    expect(encodeKey(key)).toBe(encoded)
  })

  it('writes every byte outside A-Z a-z 0-9 _ . : @ - as %XX', () => {
    for (let code = 0; code < 128; code++) {
      const character = String.fromCharCode(code)
      const plain = /[A-Za-z0-9_.:@-]/.test(character)
      const escaped = `%${code.toString(16).toUpperCase().padStart(2, '0')}`
      expect(encodeKey(character)).toBe(plain ? character : escaped)
    }
  })

  it.each([
    ['plain', 'x'.repeat(128), 'x'.repeat(129)],
    ['escaped', `${'x'.repeat(125)} `, `${'x'.repeat(126)} `],
  ])('keeps 128 encoded characters and hashes 129 (%s)', (_, fits, tooLong) => {
    expect(encodeKey(fits)).toHaveLength(128)
    expect(encodeKey(tooLong)).toBe(`%h${sha256(tooLong.replace(' ', '%20'))}`)
    expect(encodeKey(tooLong)).toHaveLength(45)
  })

  it('bounds a key of 1 MiB and tells apart two that differ in the last byte (B24)', () => {
    const long = 'x'.repeat(2 ** 20 - 1)
    expect(encodeKey(`${long}a`)).toHaveLength(45)
    expect(encodeKey(`${long}a`)).not.toBe(encodeKey(`${long}b`))
  })

  it('cannot be imitated: the text of a hashed key is another key', () => {
    const hashed = encodeKey('x'.repeat(129))
    expect(encodeKey(hashed)).not.toBe(hashed)
  })

  it('never makes one key of two, and never ends the hash tag', () => {
    const key = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 60 }),
      fc.string({ unit: fc.constantFrom('a', '%', '}', '{', ':', 'h', 'u', '\ud83d', '\ude00', ' ') }),
    )
    fc.assert(
      fc.property(key, key, (a, b) => {
        expect(encodeKey(a)).toMatch(/^[A-Za-z0-9_.:@%-]{1,128}$/)
        expect(encodeKey(a) === encodeKey(b)).toBe(a === b)
      }),
    )
  })
})

describe('the encoding of a name', () => {
  it.each([
    ['login', 'login'],
    ['a:b', 'a%3Ab'],
    ['a%3Ab', 'a%253Ab'],
    ['100-per-1m', '100-per-1m'],
    ['per user', 'per%20user'],
  ])('writes %j as %s, one part of a key', (name, encoded) => {
    expect(encodeName(name)).toBe(encoded)
  })
})

describe('a hash', () => {
  it.each(['', 'abc', 'é€😀', 'x'.repeat(1000)])(
    'of %j is its SHA-256 in 43 characters of base64url',
    (text) => {
      expect(hash(text)).toBe(sha256(text))
      expect(hash(text)).toMatch(/^[A-Za-z0-9_-]{43}$/)
    },
  )
})
