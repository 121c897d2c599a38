import { contractPath, type Site } from '../../testing/src/adapter-contract/site.js'
import { runtimeAddress } from '../src/address.js'
import { type AddressFunction, type FetchHandler, forwardedFor, type RateLimit } from '../src/index.js'

/** A site of the contract as one handler: limiters of the application, the group and the route, from outside in. */
export function siteHandler<Rest extends unknown[]>(
  { app, group, route }: Pick<Site, 'app' | 'group' | 'route'>,
  handler: FetchHandler<Rest>,
): FetchHandler<Rest> {
  const within = (limits: readonly unknown[] | undefined, inner: FetchHandler<Rest>): FetchHandler<Rest> =>
    [...((limits ?? []) as RateLimit[])]
      .reverse()
      .reduce<FetchHandler<Rest>>((next, limit) => limit(next), inner)
  const item = within(route, handler)
  const api = within(group, (request, ...rest) =>
    new URL(request.url).pathname === contractPath && ['GET', 'HEAD'].includes(request.method)
      ? item(request, ...rest)
      : new Response('not found', { status: 404 }),
  )
  return within(app, (request, ...rest) =>
    new URL(request.url).pathname.startsWith('/api/')
      ? api(request, ...rest)
      : new Response('not found', { status: 404 }),
  )
}

/** How a site that trusts proxies, or none, finds addresses. */
export function addressFor(trust: Site['trust']): AddressFunction {
  if (trust === 'one-hop') return forwardedFor(1)
  if (trust === undefined) return runtimeAddress
  return (request) => request.headers.get('x-forwarded-for')?.split(',')[0]
}

/** A response with the headers that a site gives each. */
export function withSiteHeaders(response: Response, headers: Site['responseHeaders'] = {}): Response {
  for (const [name, value] of Object.entries(headers)) response.headers.set(name, value)
  return response
}
