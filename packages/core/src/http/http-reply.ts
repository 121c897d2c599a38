import type { Decision } from '../decision.js'
import { badOption, refuseUnknownOptions } from '../errors.js'
import { type HeaderSet, type LegacyReset, resolveHeaderSets } from './headers.js'
import { checkStatusCode } from './http-options.js'
import { readMessage, refuse } from './refusal.js'
import { setHeaders } from './response-headers.js'

/** Options of {@link httpReply}, as every adapter has them. */
export interface HttpReplyOptions {
  /** Which quota headers to send, if any. Default `['draft-8', 'draft-6']`. */
  headers?: HeaderSet | readonly HeaderSet[] | false
  /** What `X-RateLimit-Reset` of the set `legacy` is: seconds since 1970, or from now. Default `'epoch'`. */
  legacyReset?: LegacyReset
  /** The body of a refusal: text as text/plain, an object as JSON. Default: problem details. */
  message?: string | object
  /** The status of a refusal for want of quota, 400 to 599. Default 429. */
  statusCode?: number
  /** The request's header `Accept`, by which problem details are sent as JSON or as text. Default: JSON. */
  accept?: string | undefined
}

/** What to tell an HTTP client of a decision. */
export interface HttpReply {
  /** Undefined for an allowed request, whose reply is not Sluice's. */
  readonly status: number | undefined
  /** The quota headers; of a refusal also `Retry-After`, `Cache-Control`, `Content-Type` and `Content-Length`. */
  readonly headers: Readonly<Record<string, string>>
  /** Empty for an allowed request. */
  readonly body: string
}

/**
 * Writes what an adapter would send for a decision, for servers that have none: the headers of any reply, and the
 * whole refusal of a denied request.
 * @throws SluiceError with the option, its value and what is expected
 * @example
 * const { status, headers, body } = httpReply(await limiter.consume({ key }))
 * if (status) return res.writeHead(status, headers).end(body)
 */
export function httpReply(decision: Decision, options: HttpReplyOptions = {}): HttpReply {
  if (!Array.isArray(decision?.policies)) {
    throw badOption('decision', decision, 'a decision, as `await limiter.consume()` gives it')
  }
  refuseUnknownOptions('httpReply()', options, ['headers', 'legacyReset', 'message', 'statusCode', 'accept'])
  const { headers: sets = ['draft-8', 'draft-6'], legacyReset = 'epoch', statusCode = 429, accept } = options
  checkStatusCode(statusCode)
  const message = readMessage(options.message)
  const headers: Record<string, string> = {}
  setHeaders(
    {
      responseHeader: (name) => headers[name],
      setResponseHeader: (name, value) => {
        headers[name] = value
      },
    },
    [{ limiter: '', decision, fields: resolveHeaderSets(sets, legacyReset) }],
    {},
    decision,
  )
  if (decision.allowed) return { status: undefined, headers, body: '' }
  const { status, contentType, body } = refuse(decision, statusCode, message, accept)
  headers['Content-Type'] = contentType
  headers['Content-Length'] = String(new TextEncoder().encode(body).length)
  return { status, headers, body }
}
