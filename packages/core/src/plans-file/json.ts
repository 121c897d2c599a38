import { type Path, type Place, type Source, SyntaxMistake } from './source.js'

const space = /[ \t\n\r]*/y
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON refuses exactly these inside a string
const string = /"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"/y
const otherScalar = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y

/**
 * Parses JSON as `JSON.parse` does, but remembers where each value stands, tells where a mistake is, and refuses an
 * object with the same key twice.
 * @throws SyntaxMistake
 */
export function parseJson(text: string): Source {
  const places = new Map<string, Place>()
  let at = 0

  /** Passes what matches here, and answers with it. */
  function take(pattern: RegExp): string | undefined {
    pattern.lastIndex = at
    const match = pattern.exec(text)?.[0]
    at += match?.length ?? 0
    return match
  }

  /** Passes white space, then the given character if it comes next. */
  function takes(character: string): boolean {
    take(space)
    if (text[at] !== character) return false
    at += 1
    return true
  }

  function fail(expected: string): never {
    const found = at < text.length ? `\`${String.fromCodePoint(text.codePointAt(at) as number)}\`` : 'the end'
    throw new SyntaxMistake(`Expected ${expected}, found ${found}.`, at)
  }

  function readValue(path: Path): unknown {
    if (takes('{')) return readObject(path)
    if (takes('[')) return readArray(path)
    const token = take(string) ?? take(otherScalar)
    if (token !== undefined) return JSON.parse(token)
    return fail(text[at] === '"' ? 'a string that ends on its line, without a bad escape' : 'a value')
  }

  function readObject(path: Path): object {
    const entries = new Map<string, unknown>()
    if (takes('}')) return {}
    do {
      take(space)
      const key = at
      const token = take(string) ?? fail('a key in double quotes')
      const name: string = JSON.parse(token)
      if (entries.has(name)) throw new SyntaxMistake(`The key ${token} is there twice.`, key)
      if (!takes(':')) fail('`:`')
      entries.set(name, readEntry([...path, name], key))
    } while (takes(','))
    if (!takes('}')) fail('`,` or `}`')
    // Defines each key, `__proto__` included, where an assignment would set the prototype.
    return Object.fromEntries(entries)
  }

  function readArray(path: Path): unknown[] {
    const items: unknown[] = []
    if (takes(']')) return items
    do {
      items.push(readEntry([...path, items.length]))
    } while (takes(','))
    if (!takes(']')) fail('`,` or `]`')
    return items
  }

  function readEntry(path: Path, key?: number): unknown {
    take(space)
    places.set(JSON.stringify(path), { key: key ?? at, value: at })
    return readValue(path)
  }

  const value = readValue([])
  take(space)
  if (at < text.length) fail('nothing more')
  return { value, find: (path) => places.get(JSON.stringify(path)) }
}
