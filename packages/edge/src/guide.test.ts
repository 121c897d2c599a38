import { snippetsOf } from '../../testing/test/snippets.js'
import * as edge from './index.js'

/** Each with its first line, which names it. */
const snippets = snippetsOf('edge.md').map((code) => [code.split('\n', 1)[0], code])

test.each(snippets)('the guide has a snippet that runs, and limits a request: %s', async (_name, snippet) => {
  const show = (): Response => new Response('ok')
  const scope = {
    ...edge,
    store: new edge.MemoryStore(),
    showDaily: show,
    showMonthly: show,
    showPage: show,
  }
  const run = new Function(...Object.keys(scope), `'use strict'; ${snippet}; return handler`)
  const handler: edge.LimitedHandler = run(...Object.values(scope))
  const headers = { 'x-forwarded-for': '10.1.2.3', origin: 'https://b.example' }
  const info = { remoteAddr: { hostname: '10.1.2.3' } }
  let last = new Response()
  for (let i = 0; i < 101; i++) last = await handler(new Request('https://a.example/', { headers }), info)
  expect(last.status).toBe(429)
  expect(last.headers.get('ratelimit-policy')).toContain('q=100;w=60')
})

test('the guide has snippets', () => {
  expect(snippets.length).toBeGreaterThan(3)
})
