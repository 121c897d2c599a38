import fastify, { type FastifyInstance } from 'fastify'
import { snippetsOf } from '../../testing/test/snippets.js'
import { serve } from '../test/serve.js'
import { byUser, MemoryStore, rateLimit, rateLimitPlugin } from './index.js'

const snippets = snippetsOf('fastify.md')

let app: FastifyInstance
beforeEach(() => {
  app = fastify()
})
afterEach(() => app.close())

/** Requests that one or another snippet limits. */
const requests = ['/me', '/unknown', 'POST /login', 'POST /password-reset']

const ok = async () => 'ok'

test.each(snippets)('the guide has a snippet that runs, and limits a request: %s', async (snippet) => {
  const store = new MemoryStore()
  await app.register(rateLimitPlugin, { global: false, store })
  const scope = {
    app,
    store,
    byUser,
    rateLimit,
    rateLimitPlugin,
    Fastify: () => app,
    perUser: rateLimit({ limit: 5, window: '1m' }),
    perAddress: rateLimit({ limit: 5, window: '1m' }),
    authenticate: async () => {},
    notFound: ok,
    ...{ login: ok, reset: ok, health: ok, me: ok },
  }
  const code = snippet.replace(/^import .*$/gm, '')
  const run = new Function(...Object.keys(scope), `'use strict'; return (async () => { ${code} })()`)
  await run(...Object.values(scope))
  const send = await serve(app)
  const answers = await Promise.all(requests.map((request) => send(request)))
  expect(answers.filter(({ status }) => status === 500)).toEqual([])
  expect(answers.some(({ headers }) => headers.ratelimit !== undefined)).toBe(true)
})
