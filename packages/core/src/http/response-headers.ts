import type { Decision, DecisionPart } from '../decision.js'
import type { Exchange } from './exchange.js'
import { type HeaderWriter, quotaHeaders, type ResponseHeader, retryAfterSeconds } from './headers.js'

/** What one limiter decided of a request, and how it tells the client. */
export interface RequestPart extends DecisionPart {
  readonly writers: readonly HeaderWriter[]
}

/** The headers of a response. */
type ResponseFields = Pick<Exchange, 'responseHeader' | 'setResponseHeader'>

/**
 * Writes the headers that the limiters on this request so far send, in all their sets.
 * @param written the fields as we last wrote them, so that members of others are kept when ours change
 */
export function setHeaders(
  exchange: ResponseFields,
  parts: readonly RequestPart[],
  written: Map<string, string>,
  decision: Decision,
): void {
  const writers = parts.flatMap((part) => part.writers)
  // Policies come in the order of their limiters, some of which keep theirs to themselves.
  const shown = parts.flatMap((part) => part.decision.policies.map(() => part.writers.length > 0))
  const headers = quotaHeaders(
    decision.policies.filter((_, i) => shown[i]),
    writers,
  )
  for (const header of headers) {
    const { name, value, list } = header
    exchange.setResponseHeader(name, list ? merge(exchange, written.get(name), header) : value)
    written.set(name, value)
  }
  const exposed = headers.map((header) => header.name)
  if (!decision.allowed) exchange.setResponseHeader('Cache-Control', 'no-store')
  const retryAfter = retryAfterSeconds(decision)
  if (retryAfter !== undefined) {
    exchange.setResponseHeader('Retry-After', String(retryAfter))
    exposed.push('Retry-After')
  }
  if (exchange.responseHeader('access-control-allow-origin') !== undefined) expose(exchange, exposed)
}

/** Our members of a list field, in place of what we wrote before, beside those of others. */
function merge(exchange: ResponseFields, ours: string | undefined, { name, value }: ResponseHeader): string {
  const present = exchange.responseHeader(name)
  if (!present) return value
  // Commas around both, so that only whole members match.
  const line = `, ${present}, `
  const earlier = `, ${ours}, `
  return ours !== undefined && line.includes(earlier)
    ? line.replace(earlier, () => `, ${value}, `).slice(2, -2)
    : `${present}, ${value}`
}

/** Lets scripts of other origins read our headers. */
function expose(exchange: ResponseFields, names: readonly string[]): void {
  const present = exchange.responseHeader('access-control-expose-headers')
  const known = (present ?? '').toLowerCase().split(/\s*,\s*/)
  const missing = names.filter((name) => !known.includes(name.toLowerCase()))
  if (missing.length === 0) return
  exchange.setResponseHeader(
    'Access-Control-Expose-Headers',
    [...(present ? [present] : []), ...missing].join(', '),
  )
}
