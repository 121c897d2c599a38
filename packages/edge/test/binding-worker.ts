import { type RateLimitBinding, withRateLimitBinding } from '../src/cloudflare/index.js'
import { type LimitedHandler, withRateLimit } from '../src/index.js'

const policy = { name: 'api', algorithm: 'fixed-window', limit: 2, window: '1m' } as const
const address = (request: Request): string => `${request.headers.get('client')}`
let limited: LimitedHandler | undefined

/** A coarse line before an exact one. */
export default {
  fetch(request: Request, env: { API: RateLimitBinding }): Promise<Response> {
    limited ??= withRateLimitBinding(
      withRateLimit(() => new Response('ok'), { ...policy, address }),
      {
        binding: env.API,
        policy,
        address,
        logger: { warn: () => {} },
      },
    )
    return limited(request)
  },
}
