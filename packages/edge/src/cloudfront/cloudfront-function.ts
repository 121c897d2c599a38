import { badOption, checkWhole } from '@sluice/core'
import { type KeySource, sourceOf } from './function-source.js'
import { type CountedPolicies, checkHeaderName, readPolicies } from './generated-from.js'

/** Options of {@link cloudFrontFunction}. */
export type CloudFrontFunctionOptions = CountedPolicies & {
  /**
   * Who is counted, as at the origin: `'ip'` for `byIp()`, `{ apiKey: 'x-api-key' }` for `byApiKey`, `{ header }` for
   * `byHeader`. Default `'ip'`.
   */
  key?: 'ip' | { readonly apiKey: string } | { readonly header: string }
  /** As of `byIp`: how many leading bits of an IPv6 address name a client, 1 to 128. Default 64. */
  ipv6Subnet?: number
}

/** A function for CloudFront Functions, and in what it differs from the policies. */
export interface CloudFrontFunction {
  /** For the runtime `cloudfront-js-2.0`, to be associated with a KeyValueStore and the event `viewer-request`. */
  readonly code: string
  readonly differences: readonly string[]
}

/** A publisher lists no shorter waits, unless it is told to. */
const shortestListedMs = 5000

/**
 * Writes a function for CloudFront Functions that refuses the keys which its KeyValueStore holds; `keyValueChanges` tells
 * how to fill that from the origin's block feed. It cannot count. What it cannot do of the policies is returned and
 * written to the log.
 * @throws SluiceError with the option, its value and what is expected
 */
export function cloudFrontFunction(options: CloudFrontFunctionOptions): CloudFrontFunction {
  const { key = 'ip', ipv6Subnet = 64, ...counted } = options ?? {}
  const source = readKey(key, checkWhole('ipv6Subnet', ipv6Subnet, 1, 128))
  const { name, policies, note, differences } = readPolicies('CloudFront function', counted)
  note('the function cannot count: it refuses what the origin has refused before, and admits all else')
  for (const { name, algorithm, limit, windowMs, burst } of policies) {
    if (limit === 0) note(`policy ${JSON.stringify(name)} refuses everything, which the feed does not list`)
    else if (!isLong(algorithm, limit, windowMs)) {
      note(
        `policy ${JSON.stringify(name)} (${algorithm}, burst ${burst}) gives units back every ${Math.ceil(windowMs / limit)} ms, so that its denials are over before the feed lists them`,
      )
    }
  }
  note(
    'what was refused or freed arrives after the feed was read, the store was changed and that has spread: seconds',
  )
  note('a KeyValueStore holds 5 MB; of more keys those with the longest waits are refused')
  note(
    'all requests of a key are refused, whatever they cost and whatever `skip` says, but for CORS preflights',
  )
  note('replies are JSON whatever a client accepts, and quota headers are those of draft-8 and draft-6')
  return { code: sourceOf(name, source), differences }
}

function readKey(key: unknown, ipv6Subnet: number): KeySource {
  if (key === 'ip') return { ipv6Subnet }
  const { apiKey, header } = (key ?? {}) as { apiKey?: unknown; header?: unknown }
  if (apiKey !== undefined) return { ipv6Subnet, apiKey: checkHeaderName('key', apiKey) }
  if (header !== undefined) return { ipv6Subnet, header: checkHeaderName('key', header) }
  throw badOption('key', key, "'ip', { apiKey: 'x-api-key' } or { header: 'x-tenant' }")
}

/** Whether a key that has used all may have to wait as long as publishers list. */
function isLong(algorithm: string, limit: number, windowMs: number): boolean {
  const windowed = ['fixed-window', 'sliding-window-log', 'sliding-window-ring'].includes(algorithm)
  return (windowed ? windowMs : windowMs / limit) >= shortestListedMs
}
