// The entry for Node.js alone; everything else runs on edge runtimes too.
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { badOption, SluiceError, withoutCode } from './errors.js'
import { definePlans, type Plans } from './plans.js'
import { parseJson } from './plans-file/json.js'
import { type Path, type Source, SyntaxMistake } from './plans-file/source.js'
import { parseYaml } from './plans-file/yaml.js'

/**
 * Reads plans from a JSON file, or from a YAML file where the optional package `yaml` is installed, and checks them
 * as {@link definePlans} does. The file is read once; nothing in it is run.
 * @param file a path or `file:` URL that ends in `.json`, `.yaml` or `.yml`
 * @throws SluiceError `SLUICE_BAD_PLANS_FILE` naming the file, the line and the column of the mistake, with the error
 * of `definePlans` as its `cause`; `SLUICE_MISSING_PEER` for YAML without the package
 * @example
 * const plans = await loadPlans('plans.yaml')
 */
export async function loadPlans(file: string | URL): Promise<Plans> {
  const path = file instanceof URL && file.protocol === 'file:' ? fileURLToPath(file) : file
  const extension = typeof path === 'string' ? /\.(json|ya?ml)$/i.exec(path)?.[1]?.toLowerCase() : undefined
  if (typeof path !== 'string' || extension === undefined) {
    throw badOption('file', String(file), 'the path of a file that ends in .json, .yaml or .yml')
  }
  const text = await read(path)
  const source = await parse(path, text, extension === 'json' ? parseJson : parseYaml)
  try {
    return definePlans(source.value as Parameters<typeof definePlans>[0])
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error
    throw badFile(`${path}:${lineAndColumn(text, offsetOf(error, source))}`, withoutCode(error), error)
  }
}

async function read(path: string): Promise<string> {
  try {
    return (await readFile(path, 'utf8')).replace(/^\uFEFF/, '')
  } catch (error) {
    throw badFile(path, `The file cannot be read: ${(error as Error).message}`, error)
  }
}

async function parse(
  path: string,
  text: string,
  parser: (text: string) => Source | Promise<Source>,
): Promise<Source> {
  try {
    return await parser(text)
  } catch (error) {
    if (error instanceof SluiceError) throw error
    const place = error instanceof SyntaxMistake ? `${path}:${lineAndColumn(text, error.offset)}` : path
    throw badFile(place, (error as Error).message, error)
  }
}

/** The offset of a wrong value; of the key where that is what is wrong, or where something is missing below it. */
function offsetOf(error: SluiceError, source: Source): number {
  const exact = source.find(error.path)
  if (exact) return error.code === 'SLUICE_UNKNOWN_OPTION' ? exact.key : exact.value
  return nearest(error.path, source)
}

function nearest(path: Path, source: Source): number {
  if (path.length === 0) return 0
  return source.find(path)?.key ?? nearest(path.slice(0, -1), source)
}

/** Counts both from 1, columns in UTF-16 units as editors do. */
function lineAndColumn(text: string, offset: number): string {
  const lines = text.slice(0, offset).split('\n')
  return `${lines.length}:${(lines.at(-1) as string).length + 1}`
}

function badFile(place: string, message: string, cause: unknown): SluiceError {
  return new SluiceError('SLUICE_BAD_PLANS_FILE', `${place}: ${message}`, { cause })
}
