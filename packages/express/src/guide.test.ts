import express, { type RequestHandler } from 'express'
import express4 from 'express4'
import { serve } from '../../testing/test/serve.js'
import { snippetsOf } from '../../testing/test/snippets.js'
import { byIp, MemoryStore, rateLimit } from './index.js'

/** Each with its first line, which names it. */
const snippets = snippetsOf('express.md').map((code) => [code.split('\n', 1)[0], code])

const ok: RequestHandler = (req, res) => void res.json({ limit: req.rateLimit?.limit })

/** Requests that one or another snippet has a handler for. */
const requests = [
  ['GET', '/'],
  ['GET', '/api/items/1'],
  ['POST', '/api/items'],
  ['GET', '/acme/items/1'],
  ['POST', '/login'],
  ['GET', '/search'],
  ['POST', '/admin/forgive/127.0.0.1'],
] as const

describe.each([
  ['Express 5', express],
  ['Express 4', express4 as unknown as typeof express],
])('the guide, %s', (_, framework) => {
  test.each(snippets)('has a snippet that runs, and limits a request: %s', async (_name, snippet) => {
    const app = framework()
    const scope = {
      app,
      express: framework,
      byIp,
      rateLimit,
      store: new MemoryStore(),
      showItem: ok,
      createItem: ok,
      logIn: ok,
    }
    new Function(...Object.keys(scope), `'use strict'; { ${snippet} }`)(...Object.values(scope))
    app.use(ok)
    const send = await serve(app)
    const answers = await Promise.all(requests.map(([method, path]) => send(path, { method })))
    expect(answers.filter(({ status }) => Number(status) >= 400)).toEqual([])
    expect(answers.some(({ headers }) => headers.ratelimit !== undefined)).toBe(true)
  })
})
