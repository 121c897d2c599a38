import { sha256 } from '@noble/hashes/sha2'
import { base64Url } from './base64-url.js'

const plain = /^[A-Za-z0-9_.:@-]{1,128}$/
const utf8 = new TextEncoder()

/**
 * Encodes a user's key for the inside of a store key's hash tag: no byte of it can end the tag, and two keys never
 * become one. Characters other than `A-Za-z0-9_.:@-` become %XX of their UTF-8, a lone surrogate %uXXXX, the empty
 * key `%`; above 128 characters the whole is replaced by `%h` and its SHA-256 in base64url.
 */
export function encodeKey(key: string): string {
  if (plain.test(key)) return key
  if (key === '') return '%'
  const encoded = key.replace(/[^A-Za-z0-9_.:@-]+/g, percentEncode)
  return encoded.length <= 128 ? encoded : `%h${hash(encoded)}`
}

/** Encodes the name of a limiter or policy as one part of a store key: as {@link encodeKey}, with `:` encoded too. */
export function encodeName(name: string): string {
  return encodeKey(name).replaceAll(':', '%3A')
}

/** SHA-256 of a text's UTF-8, as 43 characters of base64url. */
export function hash(text: string): string {
  return base64Url(sha256(utf8.encode(text)))
}

function percentEncode(run: string): string {
  let encoded = ''
  for (const character of run) {
    const code = character.codePointAt(0) as number
    if (code >= 0xd800 && code <= 0xdfff) {
      encoded += `%u${code.toString(16).toUpperCase()}`
    } else {
      for (const byte of utf8.encode(character))
        encoded += `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
    }
  }
  return encoded
}
