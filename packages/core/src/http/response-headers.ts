import type { Decision, DecisionPart } from '../decision.js'
import type { Exchange } from './exchange.js'
import {
  type HeaderField,
  joinFields,
  quotaHeaders,
  type ResponseHeader,
  retryAfterSeconds,
} from './headers.js'

/** What one limiter decided of a request, and how it tells the client. */
export interface RequestPart extends DecisionPart {
  readonly fields: readonly HeaderField[]
}

/** The headers of a response. */
export type ResponseFields = Pick<Exchange, 'responseHeader' | 'setResponseHeader'>

/** Fields as we last wrote them, by name, so that members of others are kept when ours change. */
export type Written = Record<string, string>

/** Writes the headers that the limiters on this request so far send, in all their sets. */
export function setHeaders(
  exchange: ResponseFields,
  parts: readonly RequestPart[],
  written: Written,
  decision: Decision,
): void {
  const headers = headersOf(parts, decision)
  for (const header of headers) {
    const { name, value, list } = header
    exchange.setResponseHeader(name, list ? merge(exchange, written[name], header) : value)
    written[name] = value
  }
  if (!decision.allowed) exchange.setResponseHeader('Cache-Control', 'no-store')
  const retryAfter = retryAfterSeconds(decision)
  if (retryAfter !== undefined) exchange.setResponseHeader('Retry-After', String(retryAfter))
  if (exchange.responseHeader('access-control-allow-origin') === undefined) return
  const exposed = headers.map((header) => header.name)
  if (retryAfter !== undefined) exposed.push('Retry-After')
  expose(exchange, exposed)
}

function headersOf(parts: readonly RequestPart[], { policies }: Decision): readonly ResponseHeader[] {
  if (parts.length === 1) return quotaHeaders(policies, (parts[0] as RequestPart).fields)
  // Policies come in the order of their limiters, some of which keep theirs to themselves.
  const shown = parts.flatMap((part) => part.decision.policies.map(() => part.fields.length > 0))
  return quotaHeaders(
    policies.filter((_, i) => shown[i]),
    joinFields(parts.map((part) => part.fields)),
  )
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
