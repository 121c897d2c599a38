import { checkWhole } from '../check-whole.js'
import { badOption } from '../errors.js'
import { hash } from '../key.js'
import { remembering } from '../remembering.js'
import { type Extractor, isThenable, type MaybePromise, type RequestContext } from './exchange.js'
import { clientOf } from './ip.js'

/** Options of {@link byIp}. */
export interface ByIpOptions {
  /** How many leading bits of an IPv6 address name a client, 1 to 128. Default 64, what one subscriber holds. */
  ipv6Subnet?: number
}

/**
 * Counts by client address (`ip:203.0.113.5`, `ip:2001:db8:1:2::/64`), as the framework resolves it: tell the
 * framework which proxies in front of it to trust. Spellings of one IPv4 address are one client.
 */
export function byIp(options: ByIpOptions = {}): Extractor {
  const ipv6Subnet = subnetOf(options)
  // Connections are kept open, and clients come back: reading an address costs more than all else that a key needs.
  const keyOf = remembering(maxKnown, (ip: string) => ipKey(ip, ipv6Subnet))
  return (_request, { ip }) => {
    if (ip === undefined) return undefined
    return ip.length <= longestKnown ? keyOf(ip) : ipKey(ip, ipv6Subnet)
  }
}

/** How many addresses are remembered at once, and how long they may be: clients may have written them. */
const maxKnown = 256
const longestKnown = 64

/** The key under which {@link byIp} counts an address, for the methods of a limiter; no address at all is `ip:`. */
byIp.of = (ip: string | undefined, options: ByIpOptions = {}): string => ipKey(ip, subnetOf(options))

function subnetOf({ ipv6Subnet = 64 }: ByIpOptions): number {
  return checkWhole('ipv6Subnet', ipv6Subnet, 1, 128)
}

/** The `ip:` key of an address; also what extractors that find nothing fall back to. No address at all is `ip:`. */
export function ipKey(ip: string | undefined, ipv6Subnet = 64): string {
  return `ip:${ip ? clientOf(ip, ipv6Subnet) : ''}`
}

/** Counts by the value of a request header (`header:x-tenant:acme`). Only for headers that a trusted hop sets. */
export function byHeader(name: string): Extractor {
  const header = checkHeader('byHeader', name)
  return (_request, context) => tagged(`header:${header}:`, context.header(header))
}

/**
 * Counts by an API key in a request header. The key itself is neither stored nor shown, only its SHA-256 (`key:…`).
 * A key that nobody verified mints quota: pair it with a limiter by address, or verify it first.
 */
export function byApiKey(header: string): Extractor {
  const name = checkHeader('byApiKey', header)
  return (_request, context) => {
    const value = context.header(name)
    return value ? byApiKey.of(value) : undefined
  }
}

/** The key under which {@link byApiKey} counts an API key, for the methods of a limiter. */
byApiKey.of = (value: string): string => `key:${hash(value)}`

/** Counts by what `user` finds in the request, such as the id of the account (`user:42`). */
export function byUser<Req>(
  user: (request: Req) => MaybePromise<string | number | undefined | null>,
): Extractor<Req> {
  if (typeof user !== 'function') throw badOption('byUser', user, 'a function of the request')
  const keyOf = (id: string | number | undefined | null): string | undefined =>
    id === undefined || id === null || id === '' ? undefined : `user:${id}`
  return (request) => {
    const id = user(request)
    return isThenable(id) ? Promise.resolve(id).then(keyOf) : keyOf(id)
  }
}

/** Counts all requests of one plan together (`plan:free`). */
export function byPlan(): Extractor {
  return (_request, { plan }) => tagged('plan:', plan)
}

/**
 * Counts by several extractors at once: a key for each combination of their parts, never the same for two of them.
 * A part that finds nothing is the client's address.
 */
export function compose<Req>(...extractors: readonly Extractor<Req>[]): Extractor<Req> {
  if (extractors.length === 0 || extractors.some((extractor) => typeof extractor !== 'function')) {
    throw badOption('compose', extractors, 'at least one extractor, each a function')
  }
  return (request, context) => {
    const join = (parts: readonly (string | undefined)[]): string =>
      parts.map((part) => (part ?? ipKey(context.ip)).replace(/[%|]/g, encodeURIComponent)).join('|')
    const parts = extractors.map((extractor) => {
      try {
        return extractor(request, context)
      } catch (error) {
        // Beside one that rejects, which must not be left without anybody to hear of it.
        return Promise.reject(error)
      }
    })
    return parts.some(isThenable) ? Promise.all(parts).then(join) : join(parts as (string | undefined)[])
  }
}

/** Where {@link planByApiKey} looks an API key up: an object, a Map, or a function. */
export type PlanLookup =
  | Readonly<Record<string, string>>
  | ReadonlyMap<string, string>
  | ((apiKey: string) => MaybePromise<string | undefined>)

/**
 * Finds a request's plan by its API key, for the option `plan`. A request without a key, or with one that the lookup
 * does not know, has no plan of its own and follows `defaultPlan`.
 * @param options.header the request header that holds the key; default `x-api-key`
 */
export function planByApiKey(
  lookup: PlanLookup,
  options: { header?: string } = {},
): (request: unknown, context: RequestContext) => MaybePromise<string | undefined> {
  const header = checkHeader('header', options.header ?? 'x-api-key')
  const find = asFunction(lookup)
  return (_request, context) => {
    const apiKey = context.header(header)
    return apiKey ? find(apiKey) : undefined
  }
}

function asFunction(lookup: PlanLookup): (apiKey: string) => MaybePromise<string | undefined> {
  if (typeof lookup === 'function') return lookup
  if (lookup instanceof Map) return (apiKey) => lookup.get(apiKey)
  if (typeof lookup !== 'object' || lookup === null) {
    throw badOption('planByApiKey', lookup, 'an object, a Map or a function from API key to plan')
  }
  const plans = new Map(Object.entries(lookup))
  return (apiKey) => plans.get(apiKey)
}

function tagged(tag: string, value: string | undefined): string | undefined {
  return value ? tag + value : undefined
}

function checkHeader(option: string, name: unknown): string {
  if (typeof name !== 'string' || !/^[!#$%&'*+.^_`|~0-9a-z-]+$/i.test(name)) {
    throw badOption(option, name, 'the name of a request header')
  }
  return name.toLowerCase()
}
