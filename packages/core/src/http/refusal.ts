import Negotiator from 'negotiator'
import type { Decision } from '../decision.js'
import { badOption } from '../errors.js'
import { remembering } from '../remembering.js'
import { retryAfterSeconds } from './headers.js'

/** The reply to a denied request, ready to be sent. */
export interface Refusal {
  readonly status: number
  readonly contentType: string
  readonly body: string
  /** What it says, as one line of plain text, whatever the body. */
  readonly text: string
}

/** The option `message`, as it is sent. */
export type Message = Pick<Refusal, 'contentType' | 'body'>

const plainText = 'text/plain; charset=utf-8'
/** Problem types of the draft, and their titles, by the reason of a denial. */
const kinds = {
  quota: ['quota-exceeded', 'Quota exceeded'],
  blocked: ['abnormal-usage-detected', 'Blocked'],
  'store-error': ['temporary-reduced-capacity', 'Temporarily reduced capacity'],
} as const

const problemTypes = 'https://iana.org/assignments/http-problem-types#'

/** Reads the option `message`. */
export function readMessage(message: unknown): Message | undefined {
  if (message === undefined) return undefined
  if (typeof message === 'string') return { contentType: plainText, body: message }
  const body = typeof message === 'object' && message !== null ? stringify(message) : undefined
  if (body === undefined) throw badOption('message', message, 'text, or an object that JSON can hold')
  return { contentType: 'application/json; charset=utf-8', body }
}

/**
 * Writes the reply to a denied request: the user's own message, else problem details (RFC 9457), or plain text for a
 * client that accepts no JSON.
 */
export function refuse(
  decision: Decision,
  statusCode: number,
  message: Message | undefined,
  accept: string | undefined,
): Refusal {
  const failed = decision.reason === 'store-error'
  const status = failed ? 503 : statusCode
  const [kind, title] = kinds[decision.reason as keyof typeof kinds] ?? kinds.quota
  const detail = explain(decision)
  const text = message?.contentType === plainText ? message.body : `${title}. ${detail}`
  if (message) return { status, ...message, text }
  if (!acceptsJson(accept)) return { status, contentType: plainText, body: `${text}\n`, text }
  const denying = decision.policies.filter((policy) => !policy.allowed && !policy.shadow)
  const names = denying.map((policy) => policy.name)
  // Of all this, only names may hold what JSON has to escape.
  const violated = names.length > 0 ? `,"violated-policies":${JSON.stringify(names)}` : ''
  const body = `{"type":"${problemTypes}${kind}","title":"${title}","status":${status},"detail":"${detail}"${violated}}`
  return { status, contentType: 'application/problem+json', body, text }
}

function stringify(value: object): string | undefined {
  try {
    return JSON.stringify(value)
  } catch {
    return undefined // a cycle or a bigint
  }
}

function explain(decision: Decision): string {
  const seconds = retryAfterSeconds(decision)
  if (decision.reason === 'store-error') return 'The request could not be counted. Try again shortly.'
  return seconds === undefined
    ? 'The request costs more than the limit can ever admit.'
    : `Try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}.`
}

/** Answers for the values of `Accept` seen last: few, and the same again and again. */
const asksForJson = remembering(100, (accept: string) => {
  const negotiator = new Negotiator({ headers: { accept } })
  return negotiator.mediaTypes(['application/problem+json', 'application/json']).length > 0
})

function acceptsJson(accept: string | undefined): boolean {
  // A longer one is no browser's, and dear to read.
  return accept === undefined || accept.length > 1024 || asksForJson(accept)
}
