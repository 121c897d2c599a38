import { SluiceError } from '../errors.js'
import { type Path, type Place, type Source, SyntaxMistake } from './source.js'

/**
 * Parses YAML 1.2 with the core schema: null, booleans, numbers, text, lists and maps with text keys. A key that is
 * there twice and any tag are refused.
 * @throws SyntaxMistake, or SluiceError `SLUICE_MISSING_PEER` without the optional package `yaml`
 */
export async function parseYaml(text: string): Promise<Source> {
  const { isAlias, isMap, isSeq, parseDocument, visit } = await import('yaml').catch((cause) => {
    throw new SluiceError(
      'SLUICE_MISSING_PEER',
      'Plans in YAML need the package `yaml`, which cannot be loaded. Run `npm install yaml`, or write the plans as JSON.',
      { cause },
    )
  })
  const options = { schema: 'core', stringKeys: true, resolveKnownTags: false, prettyErrors: false } as const
  const document = parseDocument(text, options)
  // What is only a warning to the parser is a tag that it does not know.
  const [mistake] = [...document.errors, ...document.warnings]
  if (mistake) throw new SyntaxMistake(`${mistake.message}.`, mistake.pos[0])
  visit(document, {
    Alias(_key, alias) {
      if (!alias.resolve(document))
        throw new SyntaxMistake(`There is no anchor &${alias.source}.`, startOf(alias))
    },
  })

  function find(path: Path): Place | undefined {
    let place: Place | undefined
    let node: unknown = document.contents
    for (const part of path) {
      const parent = isAlias(node) ? node.resolve(document) : node
      const pair = isMap(parent) ? parent.items.find((item) => String(item.key) === part) : undefined
      node = isSeq(parent) ? parent.items[part as number] : pair?.value
      if (!node) return undefined
      place = { key: startOf(pair?.key ?? node), value: startOf(node) }
    }
    return place
  }

  return { value: document.toJS(), find }
}

function startOf(node: unknown): number {
  return (node as { range?: [number, number, number] }).range?.[0] ?? 0
}
