import { type ExecutionContext, HttpException } from '@nestjs/common'
import type { Decision, Refusal } from '@sluice/core'

/** What a refused call throws tells, whatever the transport. */
export interface Denial {
  readonly decision: Decision
  /** Every header that the limiters set: those of the quota, `Retry-After`, `Cache-Control`. Over HTTP the response has them. */
  readonly headers: Readonly<Record<string, string>>
}

/** What clients of other transports are told of a refusal. */
export interface DenialDetails {
  readonly code: 'SLUICE_DENIED'
  readonly reason: Decision['reason']
  /** Milliseconds until this call could pass; null when it never can. */
  readonly retryAfterMs: number | null
}

/**
 * Refuses a call over HTTP or GraphQL. Its status is 429 or the option `statusCode`, or 503 for a store that failed;
 * `getResponse()` is the body: problem details, or the option `message`.
 */
export class RateLimitException extends HttpException implements Denial {
  readonly decision: Decision
  readonly headers: Readonly<Record<string, string>>
  /** The reply as it is sent over HTTP. */
  readonly refusal: Refusal
  /** What a GraphQL client finds under `extensions` of the error. */
  readonly extensions: DenialDetails

  constructor(decision: Decision, refusal: Refusal, headers: Readonly<Record<string, string>>) {
    super(/\bjson\b/.test(refusal.contentType) ? JSON.parse(refusal.body) : refusal.body, refusal.status)
    this.message = refusal.text
    this.decision = decision
    this.headers = headers
    this.refusal = refusal
    this.extensions = detailsOf(decision)
  }
}

/** The exception for a call, of the kind that the filters of its transport know. */
export async function exceptionFor(
  context: ExecutionContext,
  decision: Decision,
  refusal: Refusal,
  headers: Readonly<Record<string, string>>,
): Promise<Error & Denial> {
  const error = { status: 'error', message: refusal.text, ...detailsOf(decision) }
  // Imported when they are needed, since an application has them only with such transports.
  switch (context.getType()) {
    case 'ws': {
      const { WsException } = await import('@nestjs/websockets')
      return Object.assign(new WsException(error), { decision, headers })
    }
    case 'rpc': {
      const { RpcException } = await import('@nestjs/microservices')
      return Object.assign(new RpcException(error), { decision, headers })
    }
    default:
      return new RateLimitException(decision, refusal, headers)
  }
}

function detailsOf({ reason, retryAfterMs }: Decision): DenialDetails {
  return { code: 'SLUICE_DENIED', reason, retryAfterMs: Number.isFinite(retryAfterMs) ? retryAfterMs : null }
}
