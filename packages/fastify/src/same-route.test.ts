import { remaining, serve, statuses } from '../test/serve.js'
import { app, get, limit, newApp, plugin } from '../test/site.js'

describe('automatic HEAD routes', () => {
  test('share the limiter of their GET route, and are charged once B34', async () => {
    await plugin()
    get('/', limit(10))
    get('/other', limit(10))
    expect(await remaining(await serve(app), '/', 'HEAD /', '/other')).toEqual(['9', '8', '9'])
  })

  test('are charged once to the global limit B34', async () => {
    await plugin(limit(10))
    app.get('/', async () => 'ok')
    expect(await remaining(await serve(app), '/', 'HEAD /')).toEqual(['9', '8'])
  })

  test('are out of the global limit where their GET route is', async () => {
    await plugin(limit(10))
    get('/', false)
    expect(await remaining(await serve(app), '/', 'HEAD /')).toEqual([undefined, undefined])
  })
})

describe('the root of a prefix', () => {
  test('is one route with and without a slash, charged once B43', async () => {
    await plugin()
    let asked = 0
    const key = () => `key:${++asked > 0}`
    await app.register(
      async (child) => {
        child.post('/', { config: { rateLimit: { ...limit(2), key } } }, async () => 'ok')
      },
      { prefix: '/resource' },
    )
    const send = await serve(app)
    expect(await statuses(send, 'POST /resource', 'POST /resource/', 'POST /resource')).toEqual([
      200, 200, 429,
    ])
    expect(asked).toBe(3)
  })

  test('shares its limit with the HEAD routes of both B34 B43', async () => {
    await plugin()
    await app.register(async (child) => get('/', limit(10), child), { prefix: '/resource' })
    const requests = ['/resource', '/resource/', 'HEAD /resource', 'HEAD /resource/']
    expect(await remaining(await serve(app), ...requests)).toEqual(['9', '8', '7', '6'])
  })
})

describe('whatever spelling of a URL reaches a route', () => {
  test.each(['the limit of the route', 'the global limit'])('is counted by %s B29', async (which) => {
    const router = { caseSensitive: false, ignoreTrailingSlash: true, ignoreDuplicateSlashes: true }
    newApp({ routerOptions: router })
    const global = which === 'the global limit'
    await plugin(global ? limit(3) : { global: false })
    app.post('/login', { config: global ? {} : { rateLimit: limit(3) } }, async () => 'in')
    const send = await serve(app)
    const spellings = ['/login', '/LOGIN/', '//login', '/%6Cogin', '/login?x', '/Login/', '/login;x']
    const answered = await statuses(send, ...spellings.map((path) => `POST ${path}`))
    // The last one is another URL, and so the business of the global limit alone.
    expect(answered).toEqual([200, 200, 200, 429, 429, 429, global ? 429 : 404])
  })
})
