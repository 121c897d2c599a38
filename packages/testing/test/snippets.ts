import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The snippets of a page of the guide. */
export function snippetsOf(page: string, language = 'js'): string[] {
  const guide = readFileSync(join(__dirname, '../../../docs/guide', page), 'utf8')
  const fences = new RegExp(`^ *\`\`\`${language}\\n(.*?)\`\`\``, 'gms')
  return [...guide.matchAll(fences)].map(([, code = '']) => code)
}
