import {
  type RateLimitOptions as CoreOptions,
  type Decision,
  type Exchange,
  HttpLimiter,
  joinHeader,
  type Limiter,
  onResponseEnd,
} from '@sluice/core'
import type { NextFunction, Request, RequestHandler, Response } from 'express'

export * from '@sluice/core/user'

declare global {
  namespace Express {
    interface Request {
      /** The decision of all limiters that the request has passed so far. */
      rateLimit?: Decision
    }
  }
}

/** Options of {@link rateLimit}. */
export type RateLimitOptions = CoreOptions<
  Request,
  [req: Request, res: Response, next: NextFunction],
  Response
>

/** A middleware of Express that limits requests. */
export interface RateLimitMiddleware {
  // Of request and response only what is the same for all routes, so that each keeps the types of its own.
  (req: Pick<Request, 'app'>, res: Pick<Response, 'app'>, next: NextFunction): void | Promise<void>
  /** What it counts in, for `reset`, `refund`, `block`, `peek` and `close`. */
  readonly limiter: Limiter
}

/**
 * Makes a middleware that limits requests, for an application, a router or a route. A request that meets the same
 * middleware again is not charged again.
 * @throws SluiceError with the option, its value and what is expected
 * @example
 * app.use(rateLimit({ limit: 100, window: '1m' }))
 */
export function rateLimit(options: RateLimitOptions): RateLimitMiddleware {
  const http = new HttpLimiter(options)
  const middleware: RequestHandler = async function rateLimitMiddleware(req, res, next) {
    try {
      const { decision, refusal, proceed } = await http.handle(new ExpressExchange(req, res))
      req.rateLimit = decision
      if (refusal) {
        if (res.headersSent) return
        if (options.onLimited) return void (await options.onLimited(req, res, next, decision))
        // Not `send`, which would add an ETag.
        const length = Buffer.byteLength(refusal.body)
        res.writeHead(refusal.status, { 'Content-Type': refusal.contentType, 'Content-Length': length })
        return void res.end(refusal.body)
      }
      if (!proceed) return
    } catch (error) {
      return next(error)
    }
    next()
  }
  return Object.assign(middleware as RateLimitMiddleware, { limiter: http.limiter })
}

// A class, since an object with getters of its own costs more than the decision.
class ExpressExchange implements Exchange<Request, Response> {
  constructor(
    readonly request: Request,
    readonly response: Response,
  ) {}

  get identity(): Request {
    return this.request
  }

  get method(): string {
    return this.request.method
  }

  get ip(): string | undefined {
    return this.request.ip
  }

  get trustsEveryProxy(): boolean {
    return this.request.app.get('trust proxy') === true
  }

  get trustsNoProxy(): boolean {
    return !this.request.app.get('trust proxy')
  }

  get gone(): boolean {
    return this.request.socket?.destroyed === true
  }

  get headersSent(): boolean {
    return this.response.headersSent
  }

  header(name: string): string | undefined {
    return joinHeader(this.request.headers[name])
  }

  responseHeader(name: string): string | undefined {
    return joinHeader(this.response.getHeader(name))
  }

  setResponseHeader(name: string, value: string): void {
    this.response.setHeader(name, value)
  }

  onEnd(listener: (finished: boolean) => void): void {
    onResponseEnd(this.response, listener)
  }
}
