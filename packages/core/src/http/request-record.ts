import type { Decision } from '../decision.js'
import { Given } from '../receipt.js'
import type { Refusal } from './refusal.js'
import type { RequestPart, Written } from './response-headers.js'

/** What an adapter must do with a request. */
export interface HttpOutcome {
  /** The decision of all limiters on this request so far. */
  readonly decision: Decision
  /**
   * The reply to send, if this limiter denied the request; its headers are set. Where headers had gone out before,
   * there is nothing to send.
   */
  readonly refusal: Refusal | undefined
  /** Whether the request may go on: not when it was denied, nor when its client left while it waited. */
  readonly proceed: boolean
}

/** What a limiter made of a request. */
interface Pass {
  readonly limiter: object
  readonly outcome: Promise<HttpOutcome>
}

/** What is known of one request across the limiters it passes. */
export class RequestRecord {
  /** What its limiters decided, in their order. */
  parts: readonly RequestPart[] = []
  readonly written: Written = {}
  /** What the last of its limiters told the client. */
  told: Decision | undefined
  /** Who wants to know of the response's end; one listener on the response serves all. */
  ends: ((finished: boolean) => void)[] | undefined
  #passes: readonly Pass[] = []

  /** What a limiter made of the request when it met it before. */
  outcomeOf(limiter: object): Promise<HttpOutcome> | undefined {
    for (const pass of this.#passes) if (pass.limiter === limiter) return pass.outcome
    return undefined
  }

  /** Notes what a limiter makes of the request. Lists are made anew, since one that grows takes room for 16 more. */
  addPass(limiter: object, outcome: Promise<HttpOutcome>): void {
    this.#passes = [...this.#passes, { limiter, outcome }]
  }

  /** Notes what a limiter decided. */
  addPart(part: RequestPart): void {
    this.parts = [...this.parts, part]
  }
}

/** A request's record, on the request itself and out of sight, as receipts are on a decision. */
class Records extends Given {
  readonly #record = new RequestRecord()

  static of(identity: object): RequestRecord | undefined {
    return #record in identity ? identity.#record : undefined
  }

  static ofNew(identity: object): RequestRecord {
    return new Records(identity).#record
  }
}

/** The record of a request, which is made when the first of its limiters asks. */
export function recordOf(identity: object): RequestRecord {
  const place = placeOf(identity)
  return Records.of(place) ?? Records.ofNew(place)
}

/** The record of a request that has met a limiter. */
export function knownRecordOf(identity: object): RequestRecord | undefined {
  return Records.of(placeOf(identity))
}

/** Express changes the prototype of each request, after which a property more is dear; not so on its list of headers. */
function placeOf(identity: object & { readonly rawHeaders?: unknown }): object {
  return Array.isArray(identity.rawHeaders) ? identity.rawHeaders : identity
}
