import 'reflect-metadata'
import { RequestMethod } from '@nestjs/common'
import { fitName } from '@sluice/core'

/** A class whose methods are called: a controller, a resolver, a gateway. */
export type HandlerClass = { readonly name: string; readonly prototype: object }
/** The function of a method of such a class. */
export type Handler = { readonly name: string }

/** The name of a method's limiter, the same at each start: method and pattern of a route, else class and method. */
export function handlerNameOf(type: HandlerClass, handler: Handler): string {
  const read = (key: string, target: object): unknown => Reflect.getMetadata(key, target)
  const method = read('method', handler)
  const paths = read('path', handler)
  if (typeof method !== 'number' || paths === undefined) return fitName(`${type.name}.${handler.name}`)
  const patterns = each(read('path', type)).flatMap((base) => each(paths).map((path) => join(base, path)))
  const version = read('__version__', handler) ?? read('__version__', type)
  const constraints = [
    ...(version === undefined ? [] : [`version=${each(version).map(String)}`]),
    ...(read('host', type) === undefined ? [] : [`host=${each(read('host', type))}`]),
  ]
  return fitName([RequestMethod[method], patterns.join(','), ...constraints].join(' '))
}

/** The name of the limiter that all methods of a class share. */
export function classNameOf(type: HandlerClass): string {
  return fitName(type.name)
}

function each(value: unknown): readonly unknown[] {
  return [value].flat()
}

function join(...parts: readonly unknown[]): string {
  return `/${parts.join('/')}`.replace(/\/+/g, '/').replace(/(?<=.)\/$/, '')
}
