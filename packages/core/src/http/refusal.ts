import Negotiator from 'negotiator'
import type { Decision } from '../decision.js'
import { retryAfterSeconds } from './headers.js'

/** The reply to a denied request, ready to be sent. */
export interface Refusal {
  readonly status: number
  readonly contentType: string
  readonly body: string
}

const problemTypes = 'https://iana.org/assignments/http-problem-types#'

/**
 * Writes the reply to a denied request: the user's own message, else problem details (RFC 9457), or plain text for a
 * client that accepts no JSON.
 */
export function refuse(
  decision: Decision,
  statusCode: number,
  message: string | object | undefined,
  accept: string | undefined,
): Refusal {
  const failed = decision.reason === 'store-error'
  const status = failed ? 503 : statusCode
  if (typeof message === 'string') return { status, contentType: 'text/plain; charset=utf-8', body: message }
  if (message !== undefined) {
    return { status, contentType: 'application/json; charset=utf-8', body: JSON.stringify(message) }
  }
  const title = failed ? 'Temporarily reduced capacity' : 'Quota exceeded'
  const detail = explain(decision)
  if (!acceptsJson(accept)) return { status, contentType: 'text/plain; charset=utf-8', body: `${title}. ${detail}\n` }
  const denying = decision.policies.filter((policy) => !policy.allowed && !policy.shadow)
  const problem = {
    type: problemTypes + (failed ? 'temporary-reduced-capacity' : 'quota-exceeded'),
    title,
    status,
    detail,
    ...(failed ? {} : { 'violated-policies': denying.map((policy) => policy.name) }),
  }
  return { status, contentType: 'application/problem+json', body: JSON.stringify(problem) }
}

function explain(decision: Decision): string {
  const seconds = retryAfterSeconds(decision)
  if (decision.reason === 'store-error') return 'The request could not be counted. Try again shortly.'
  return seconds === undefined
    ? 'The request costs more than the limit can ever admit.'
    : `Try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}.`
}

function acceptsJson(accept: string | undefined): boolean {
  if (accept === undefined) return true
  const negotiator = new Negotiator({ headers: { accept } })
  return negotiator.mediaTypes(['application/problem+json', 'application/json']).length > 0
}
