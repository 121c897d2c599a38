import { fitName } from '@sluice/core'
import type { RouteOptions } from 'fastify'

/** The methods of a route. */
export function methodsOf({ method }: RouteOptions): readonly string[] {
  return [method].flat().sort()
}

/**
 * The pattern of a route, with what else must hold for it to be taken. One that is the root of its prefix answers with
 * and without a slash, and is one all the same.
 */
export function patternOf(route: RouteOptions & { routePath: string; prefix: string }): string {
  const { url, prefix, routePath, constraints = {} } = route
  const path = routePath === '/' && prefix !== '' ? prefix : url
  return [path, ...Object.entries(constraints).map(([name, value]) => `${name}=${value}`)].join(' ')
}

/** The name of a route's limiter, the same at each start. */
export function limiterNameOf(methods: readonly string[], pattern: string): string {
  return fitName(`${methods.join(',')} ${pattern}`)
}
