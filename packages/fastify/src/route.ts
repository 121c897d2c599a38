import { createHash } from 'node:crypto'
import { SluiceError } from '@sluice/core'
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

/** The name of a route's limiter, the same at each start; where it does not fit, its end is a hash of all. */
export function limiterNameOf(methods: readonly string[], pattern: string): string {
  const name = `${methods.join(',')} ${pattern}`
  if (/^[\x20-\x7e]{1,64}$/.test(name)) return name
  const hash = createHash('sha256').update(name).digest('base64url').slice(0, 21)
  return `${name.slice(0, 42).replace(/[^\x20-\x7e]/g, '?')}~${hash}`
}

/** Runs what reads the options of a route or a group, whose name a mistake in them then carries. */
export function reading<T>(what: string, path: readonly string[], read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error
    const message = error.message.slice(0, -` (${error.code})`.length)
    throw new SluiceError(error.code, `${what}: ${message}`, { cause: error, path: [...path, ...error.path] })
  }
}
