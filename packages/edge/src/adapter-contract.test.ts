import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { adapterContract, type MakeServer, type Site } from '@sluice/testing'
import { addressFor, siteHandler, withSiteHeaders } from '../test/fetch-site.js'
import { type NodeBindings, nodeListener } from '../test/node-bridge.js'
import { type Decision, decisionOf, type RateLimitOptions, rateLimit } from './index.js'

const makeServer: MakeServer = async (build) => {
  const handled: (Decision | undefined)[] = []
  const errors: unknown[] = []
  const site: Site = build({
    rateLimit(options) {
      // The site, with what it trusts and sends, is known once its limiters are made.
      const limit: RateLimitOptions = {
        ...options,
        address: (request, ...rest) => addressFor(site.trust)(request, ...rest),
      }
      return rateLimit(
        'onLimited' in options ? limit : { ...limit, refusalHeaders: () => site.responseHeaders ?? {} },
      )
    },
    onLimited:
      (reply): RateLimitOptions['onLimited'] =>
      async (...args) => {
        const custom = await reply(args.at(-1) as Decision)
        return custom && new Response(custom.body, { status: custom.status })
      },
  })
  const handler = siteHandler<[NodeBindings]>(site, async (request) => {
    handled.push(decisionOf(request))
    const answer = await site.handler?.()
    const response =
      answer instanceof Readable
        ? new Response(Readable.toWeb(answer) as ReadableStream)
        : new Response('ok', { status: Number(answer ?? 200) })
    return withSiteHeaders(response, site.responseHeaders)
  })
  const server = http.createServer((incoming, outgoing) => {
    site.before?.(outgoing)
    nodeListener(async (request, bindings) => {
      try {
        return await handler(request, bindings)
      } catch (error) {
        errors.push(error)
        return new Response('failed', { status: 500 })
      }
    })(incoming, outgoing)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    handled,
    errors,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
}

adapterContract('Fetch, in Node.js', makeServer)
