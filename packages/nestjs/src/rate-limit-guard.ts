import { type CanActivate, type ExecutionContext, Inject, Injectable } from '@nestjs/common'
import type { Decision, Refusal } from '@sluice/core'
import { exceptionFor } from './exceptions.js'
import { type ContextExchange, exchangeOf } from './exchange.js'
import { RateLimits } from './rate-limits.js'

/** What stands for a refusal where none is to be sent: the client left while it waited. */
const left: Refusal = {
  status: 503,
  contentType: 'text/plain; charset=utf-8',
  body: '',
  text: 'The client left.',
}

/**
 * Limits calls: of a whole application as `APP_GUARD`, of a class or of a method. A call that meets several of them is
 * charged once. A refused call throws: `RateLimitException` over HTTP and GraphQL, `WsException` over WebSockets,
 * `RpcException` in microservices, each with `decision` and `headers`.
 * @example
 * providers: [{ provide: APP_GUARD, useClass: RateLimitGuard }]
 */
@Injectable()
export class RateLimitGuard implements CanActivate {
  constructor(@Inject(RateLimits) protected readonly limits: RateLimits) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const limits = this.limits.of(context.getClass(), context.getHandler())
    if (limits.length === 0) return true
    const exchange = this.exchangeOf(context)
    for (const { http, onLimited } of limits) {
      const { decision, refusal, proceed } = await http.handle(exchange)
      exchange.decided(decision)
      if (proceed) continue
      if (refusal && onLimited && !exchange.headersSent) await onLimited(context, decision)
      throw await this.exceptionFor(context, decision, refusal ?? left, exchange.headers)
    }
    return true
  }

  /** How a call is seen: its address, header fields and response. To be overridden for other transports. */
  protected exchangeOf(context: ExecutionContext): ContextExchange {
    return exchangeOf(context)
  }

  /** What a refused call throws. */
  protected async exceptionFor(
    context: ExecutionContext,
    decision: Decision,
    refusal: Refusal,
    headers: Readonly<Record<string, string>>,
  ): Promise<Error> {
    return exceptionFor(context, decision, refusal, headers)
  }
}
