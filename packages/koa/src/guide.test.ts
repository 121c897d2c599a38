import Router from '@koa/router'
import Koa, { type Middleware } from 'koa'
import Koa2 from 'koa2'
import { serve } from '../../testing/test/serve.js'
import { snippetsOf } from '../../testing/test/snippets.js'
import { MemoryStore, rateLimit } from './index.js'

/** Each with its first line, which names it. */
const snippets = snippetsOf('koa.md').map((code) => [code.split('\n', 1)[0], code])

const ok: Middleware = (ctx) => {
  ctx.body = { limit: ctx.state.rateLimit?.limit }
}

/** Requests that one or another snippet has a handler for. */
const requests = [
  ['GET', '/'],
  ['GET', '/api/items/1'],
  ['POST', '/api/items'],
  ['POST', '/login'],
] as const

describe.each([
  ['Koa 3', Koa],
  ['Koa 2', Koa2 as unknown as typeof Koa],
])('the guide, %s', (_, Framework) => {
  test.each(snippets)('has a snippet that runs, and limits a request: %s', async (_name, snippet) => {
    const app = new Framework()
    const scope = {
      app,
      Router,
      rateLimit,
      store: new MemoryStore(),
      showItem: ok,
      createItem: ok,
      logIn: ok,
    }
    new Function(...Object.keys(scope), `'use strict'; { ${snippet} }`)(...Object.values(scope))
    app.use(ok)
    const send = await serve(app.callback())
    const answers = await Promise.all(requests.map(([method, path]) => send(path, { method })))
    expect(answers.filter(({ status }) => Number(status) >= 400)).toEqual([])
    expect(answers.some(({ headers }) => headers.ratelimit !== undefined)).toBe(true)
  })
})
