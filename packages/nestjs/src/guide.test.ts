import * as common from '@nestjs/common'
import * as core from '@nestjs/core'
import ts from 'typescript'
import { snippetsOf } from '../../testing/test/snippets.js'
import { onExpress } from '../test/platforms.js'
import { closeAfterTest } from '../test/start.js'
import * as sluice from './index.js'

const snippets = snippetsOf('nestjs.md', 'ts')
const modules: Readonly<Record<string, unknown>> = {
  '@nestjs/common': common,
  '@nestjs/core': core,
  '@sluice/nestjs': sluice,
}

/** The root module of a snippet. */
function moduleOf(snippet: string): common.Type {
  const { outputText } = ts.transpileModule(snippet, {
    compilerOptions: {
      module: ts.ModuleKind.CommonJS,
      target: ts.ScriptTarget.ES2022,
      experimentalDecorators: true,
      emitDecoratorMetadata: true,
    },
  })
  const exported: { AppModule?: common.Type } = {}
  new Function('require', 'exports', outputText)((name: string) => modules[name], exported)
  if (!exported.AppModule) throw new Error('The snippet exports no AppModule')
  return exported.AppModule
}

/** Takes what no controller of a snippet does. */
@common.Controller()
class Rest {
  @common.Get('rest')
  rest() {}
}

describe('the guide', () => {
  test.each(snippets.map((code, i) => [i + 1, code]))(
    'has an application that starts: snippet %i',
    async (_, code) => {
      const module = moduleOf(code as string)
      const app = closeAfterTest(
        await onExpress.create({ module: class Root {}, imports: [module], controllers: [Rest] }),
      )
      await app.listen(0, '127.0.0.1')
      const response = await fetch(`${await app.getUrl()}/rest`)
      expect(response.status).toBe(200)
      const guarded = /APP_GUARD/.test(code as string)
      expect(response.headers.has('ratelimit')).toBe(guarded)
    },
  )

  test('says of each method of its controller what applies to it', async () => {
    const snippet = snippets.find((code) => code.includes('class SearchController')) as string
    const app = closeAfterTest(await onExpress.create({ module: moduleOf(snippet) }))
    await app.listen(0, '127.0.0.1')
    const url = await app.getUrl()
    const applied = async (path: string, method = 'GET') => {
      const { headers } = await fetch(url + path, { method })
      return [...(headers.get('ratelimit-policy') ?? '').matchAll(/"(.+?)"/g)].map(([, name]) => name)
    }
    expect(await applied('/')).toEqual(['app', 'burst', 'hourly'])
    expect(await applied('/deep')).toEqual(['app', 'hourly', 'burst'])
    expect(await applied('/suggest')).toEqual(['app', 'hourly'])
    expect(await applied('/unlock', 'POST')).toEqual(['burst', 'hourly', 'credentials'])
  })
})
