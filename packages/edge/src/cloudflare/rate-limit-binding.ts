import {
  badOption,
  type Check,
  fitName,
  type Policy,
  refuseUnknownOptions,
  SluiceError,
  type Store,
  type Verdict,
} from '@sluice/core'
import { type FetchHandler, type LimitedHandler, type RateLimitOptions, withRateLimit } from '../index.js'
import { coarsen } from './coarse.js'

/** A rate-limit binding of Cloudflare, as `env` has it. */
export interface RateLimitBinding {
  /** Counts a request of a key. */
  limit(request: { key: string }): Promise<{ success: boolean }>
}

/** What of the options of {@link withRateLimit} means something to a binding, which only says yes or no. */
const passedOn = [
  'key',
  'address',
  'skip',
  'preflight',
  'onLimited',
  'message',
  'statusCode',
  'refusalHeaders',
  'retryJitterMs',
  'timeoutMs',
  'onStoreError',
  'onEvent',
  'logger',
] as const

/** Options of {@link withRateLimitBinding}. */
export type RateLimitBindingOptions<Rest extends unknown[] = unknown[]> = Pick<
  RateLimitOptions<Rest>,
  (typeof passedOn)[number]
> & {
  /** The binding, `env.LOGIN` for one that is called `LOGIN` in the configuration. */
  binding: RateLimitBinding
  /** The policy that the binding was configured for by {@link wranglerConfig}. */
  policy: Policy
}

/**
 * Limits the requests of a handler by a rate-limit binding of Cloudflare: a coarse first line that costs no call over
 * the network, in front of a limiter that is exact. What it cannot express of the policy is a warning,
 * `SLUICE_CLOUDFLARE_BINDING`. The numbers of its decisions are bounds, and it sends no quota headers.
 * @throws SluiceError with the option, its value and what is expected
 * @example
 * withRateLimitBinding(withRateLimit(handler, { store, ...policy }), { binding: env.LOGIN, policy })
 */
export function withRateLimitBinding<Rest extends unknown[]>(
  handler: FetchHandler<Rest>,
  options: RateLimitBindingOptions<Rest>,
): LimitedHandler<Rest> {
  const { binding, policy, ...others } = options ?? {}
  refuseUnknownOptions('withRateLimitBinding()', others, ['binding', 'policy', ...passedOn])
  if (typeof binding?.limit !== 'function') {
    throw badOption('binding', binding, 'a rate-limit binding, such as `env.LOGIN`')
  }
  const { limit, period, differences, policy: exact } = coarsen(policy)
  const limited = withRateLimit(handler, {
    ...(others as RateLimitOptions<Rest>),
    store: new BindingStore(binding, period),
    // Not the name of the exact limiter behind it, whose headers would then have to tell the two apart.
    name: fitName(`${exact.name}-coarse`),
    algorithm: 'fixed-window',
    limit,
    window: period * 1000,
    headers: false,
  })
  limited.limiter.warn(
    'SLUICE_CLOUDFLARE_BINDING',
    `the binding for policy "${exact.name}" is coarser than it: ${differences.join('; ')}`,
  )
  return limited
}

/** Asks a binding, which knows of each key only whether it may pass. */
class BindingStore implements Store {
  readonly shared = true
  readonly #binding: RateLimitBinding
  readonly #periodUs: number

  constructor(binding: RateLimitBinding, period: number) {
    this.#binding = binding
    this.#periodUs = period * 1e6
  }

  consume(checks: readonly Check[]): Promise<readonly Verdict[]> {
    return Promise.all(checks.map((check) => this.#ask(check)))
  }

  peek(): Promise<never> {
    return cannot('tell what it would say')
  }

  refund(): Promise<never> {
    return cannot('give back')
  }

  reset(): Promise<never> {
    return cannot('forget')
  }

  async close(): Promise<void> {}

  async #ask({ key, policy, most }: Check): Promise<Verdict> {
    const { success } = await this.#binding.limit({ key })
    const waitUs = success ? 0 : this.#periodUs
    return {
      allowed: success,
      granted: success ? most : 0,
      remaining: success ? policy.limit : 0,
      retryUs: waitUs,
      replenishUs: waitUs,
      resetUs: waitUs,
      delayUs: 0,
      atUs: Date.now() * 1000,
    }
  }
}

async function cannot(what: string): Promise<never> {
  throw new SluiceError('SLUICE_CLOUDFLARE_BINDING', `A rate-limit binding cannot ${what}`)
}
