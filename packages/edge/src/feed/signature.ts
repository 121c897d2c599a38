import { badOption, base64Url } from '@sluice/core'

/** What signs a feed: at least 32 bytes, random; text counts by its UTF-8. */
export type FeedSecret = string | Uint8Array

const format = 'sluice-feed/1'
const shortestSecret = 32
const utf8 = new TextEncoder()

/** A secret that was checked; its key is made once. */
export class SigningKey {
  readonly id: string
  readonly #bytes: Uint8Array<ArrayBuffer>
  #key: ReturnType<typeof crypto.subtle.importKey> | undefined

  /** @throws SluiceError naming the option, never with the secret */
  constructor(option: string, id: unknown, secret: unknown) {
    if (typeof id !== 'string' || !/^[\w.-]{1,32}$/.test(id)) {
      throw badOption(option, id, 'keys by an id of 1 to 32 of the characters A-Z a-z 0-9 _ . -')
    }
    const bytes = typeof secret === 'string' ? utf8.encode(secret) : secret
    if (!(bytes instanceof Uint8Array) || bytes.length < shortestSecret) {
      const shown = bytes instanceof Uint8Array ? `a secret of ${bytes.length} bytes` : typeof secret
      throw badOption(option, shown, `a secret of at least ${shortestSecret} random bytes for key ${id}`)
    }
    this.id = id
    this.#bytes = Uint8Array.from(bytes)
  }

  /** Puts a signature before a text. */
  async sign(text: string): Promise<string> {
    const signature = await crypto.subtle.sign('HMAC', await this.#imported(), this.#signed(text))
    return `${format} ${this.id} ${base64Url(new Uint8Array(signature))}\n${text}`
  }

  async verify(text: string, signature: string): Promise<boolean> {
    return crypto.subtle.verify('HMAC', await this.#imported(), fromBase64Url(signature), this.#signed(text))
  }

  /** The id of the key is signed too, and which format it is. */
  #signed(text: string): Uint8Array<ArrayBuffer> {
    return utf8.encode(`${format} ${this.id}\n${text}`)
  }

  #imported(): ReturnType<typeof crypto.subtle.importKey> {
    const algorithm = { name: 'HMAC', hash: 'SHA-256' }
    this.#key ??= crypto.subtle.importKey('raw', this.#bytes, algorithm, false, ['sign', 'verify'])
    return this.#key
  }
}

/** Reads the option `keys` of those who verify: secrets by their id. */
export function verifyingKeys(keys: unknown): ReadonlyMap<string, SigningKey> {
  const secrets = typeof keys === 'object' && keys !== null ? Object.entries(keys) : []
  if (secrets.length === 0)
    throw badOption('keys', typeof keys, 'an object of secrets by the id of their key')
  return new Map(secrets.map(([id, secret]) => [id, new SigningKey('keys', id, secret)]))
}

/** The text behind a signature, or undefined where none of the keys has made it. */
export async function verified(
  signed: string,
  keys: ReadonlyMap<string, SigningKey>,
): Promise<string | undefined> {
  const head = /^sluice-feed\/1 ([\w.-]{1,32}) ([\w-]{43})\n/.exec(signed)
  if (!head) return undefined
  const [line, id = '', signature = ''] = head
  const text = signed.slice(line.length)
  return (await keys.get(id)?.verify(text, signature)) ? text : undefined
}

function fromBase64Url(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
  return Uint8Array.from(binary, (character) => character.charCodeAt(0))
}
