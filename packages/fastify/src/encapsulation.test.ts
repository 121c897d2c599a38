import type { FastifyInstance } from 'fastify'
import { serve, statuses } from '../test/serve.js'
import { app, limited, routes, window } from '../test/site.js'
import { rateLimitPlugin } from './index.js'

describe('encapsulation', () => {
  test('limits the instance and its children, not its siblings or parents', async () => {
    await app.register(async (inner) => {
      await inner.register(rateLimitPlugin, limited(1))
      routes(inner, '/own')
      await inner.register(async (child) => routes(child, '/child'))
    })
    await app.register(async (sibling) => routes(sibling, '/sibling'))
    routes(app, '/parent')
    const send = await serve(app)
    expect(await statuses(send, '/own', '/child')).toEqual([200, 429])
    expect(await statuses(send, '/sibling', '/sibling', '/parent', '/none')).toEqual([200, 200, 200, 404])
  })

  test('limits unknown URLs under the prefix of an instance with a handler for them B35', async () => {
    await app.register(
      async (inner) => {
        await inner.register(rateLimitPlugin, limited(1))
        inner.setNotFoundHandler((_request, reply) => reply.code(404).send())
      },
      { prefix: '/api' },
    )
    const send = await serve(app)
    expect(await statuses(send, '/api/a', '/api/b', '/other', '/other')).toEqual([404, 429, 404, 404])
  })
})

describe('a plugin that is registered twice', () => {
  test('in nested instances applies both limits B45', async () => {
    await app.register(rateLimitPlugin, limited(4, { name: 'all' }))
    await app.register(
      async (auth) => {
        await auth.register(rateLimitPlugin, limited(2, { name: 'auth' }))
        routes(auth, '/login')
      },
      { prefix: '/auth' },
    )
    routes(app, '/')
    const send = await serve(app)
    expect(await statuses(send, '/auth/login', '/auth/login', '/auth/login')).toEqual([200, 200, 429])
    expect(await statuses(send, '/', '/')).toEqual([200, 429])
  })

  test('on one instance applies both limits, each at its stage B45', async () => {
    await app.register(rateLimitPlugin, limited(3, { name: 'ip' }))
    await app.register(rateLimitPlugin, limited(2, { name: 'user', hook: 'preHandler', key: () => 'user' }))
    routes(app, '/')
    const send = await serve(app)
    expect(await statuses(send, '/', '/', '/')).toEqual([200, 200, 429])
    expect((await send('/')).headers['ratelimit-policy']).toBe('"ip";q=3;w=60')
  })

  test('with memories of their own needs no names B45', async () => {
    await app.register(rateLimitPlugin, { ...window, limit: 3 })
    await app.register(async (inner) => {
      await inner.register(rateLimitPlugin, { ...window, limit: 1 })
      routes(inner, '/')
    })
    expect(await statuses(await serve(app), '/', '/')).toEqual([200, 429])
  })

  test.each([
    ['on one instance', (outer: FastifyInstance) => outer.register(rateLimitPlugin, limited(2))],
    [
      'in nested instances',
      (outer: FastifyInstance) =>
        outer.register(async (inner) => {
          await inner.register(rateLimitPlugin, limited(2))
        }),
    ],
  ])('%s under one name on one store fails to start B45', async (_where, again) => {
    app.register(rateLimitPlugin, limited(1))
    again(app)
    await expect(app.ready()).rejects.toMatchObject({ code: 'SLUICE_DUPLICATE_NAME' })
  })

  test('lets routes inherit from the nearest, and of several on one instance from the last', async () => {
    await app.register(rateLimitPlugin, { global: false, statusCode: 420 })
    await app.register(rateLimitPlugin, { global: false, statusCode: 421 })
    await app.register(async (inner) => {
      await inner.register(rateLimitPlugin, { global: false, statusCode: 422 })
      inner.get('/inner', { config: { rateLimit: { ...window, limit: 0 } } }, async () => 'ok')
    })
    app.get('/outer', { config: { rateLimit: { ...window, limit: 0 } } }, async () => 'ok')
    expect(await statuses(await serve(app), '/inner', '/outer')).toEqual([422, 421])
  })
})
