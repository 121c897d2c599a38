import type { Decision, Reason } from './decision.js'
import { badOption, refuseUnknownOptions, SluiceError, show } from './errors.js'
import { Departures } from './http/departures.js'
import type { MaybePromise } from './http/exchange.js'
import { checkPlans } from './http/http-options.js'
import { pickOptions } from './http/inherit.js'
import type { LimitRequest } from './limit-request.js'
import { Limiter } from './limiter.js'
import { allLimiterOptions, type LimiterOptions, resolveLimiterOptions } from './limiter-options.js'
import { isLimit, type Policy } from './policy.js'
import { PolicyChoice } from './policy-choice.js'

/** A function of a call: it gets the arguments of the method, and the method's `this`. */
export type CallFunction<Args extends unknown[], This, T> = (this: This, ...args: Args) => MaybePromise<T>

/**
 * Options of {@link rateLimited}: these, and those of a limiter, or a `limiter`. Where several of its functions use
 * arguments, write the types of all of them in one function, and none in the others.
 */
export type RateLimitedOptions<Args extends unknown[] = [], This = unknown> = {
  /** A limiter made elsewhere, in place of the options of one. */
  limiter?: Limiter
  /** Who is counted. */
  key: CallFunction<Args, This, string>
  /** Units a call takes: whole, 0 to 10^9. Default 1. */
  cost?: number | CallFunction<Args, This, number>
  /** The plan whose policies apply; for limiters with `plans`, and required there. */
  plan?: string | CallFunction<Args, This, string>
  /** Answers a denied call in place of the method, with what the method may return. Default: throws. */
  onLimited?: (this: This, decision: Decision, ...args: Args) => unknown
} & LimiterOptions &
  Partial<Policy>

/** What a denied call throws; told by its code. */
export interface DeniedError extends SluiceError {
  readonly code: 'SLUICE_DENIED'
  /** Why, and when to come back. */
  readonly decision: Decision
}

type Method<Args extends unknown[], This> = (this: This, ...args: [...Args, ...never[]]) => Promise<unknown>

/** A decorator of methods: the standard one, and that of TypeScript's `experimentalDecorators`. */
export interface RateLimitedDecorator<Args extends unknown[], This> {
  <M extends Method<Args, This>>(method: M, context: ClassMethodDecoratorContext): M
  <M extends Method<Args, This>>(
    target: object,
    name: string | symbol,
    descriptor: TypedPropertyDescriptor<M>,
  ): void
}

const ownOptions = ['limiter', 'key', 'cost', 'plan', 'onLimited']

/**
 * Limits the calls of an async method, whatever framework calls it. A denied call throws a {@link DeniedError}, since
 * its caller expects what the method returns; `onLimited` answers instead. A call that a leaky bucket accepts waits
 * for its departure. What `key`, `cost` and `plan` throw, the call throws, and nothing is charged.
 *
 * The options of a limiter make one for all instances, named after class and method, as in `Mailer.send`; give it a
 * `name` of its own where classes are renamed by a minifier and the store is shared.
 * @throws SluiceError with the option, its value and what is expected
 * @example
 * class Mailer {
 *   @rateLimited({ limit: 10, window: '1m', key: (to: string) => `to:${to}` })
 *   async send(to: string, text: string) { … }
 * }
 */
export function rateLimited<Args extends unknown[], This = unknown>(
  options: RateLimitedOptions<Args, This>,
): RateLimitedDecorator<Args, This> {
  const limiterOptions = checkOptions(options)

  function decorate(method: Method<Args, This>, context: ClassMethodDecoratorContext): Method<Args, This> {
    if (context?.kind !== 'method') throw badOption('@rateLimited', context?.kind, 'a method to stand on')
    if (context.private && limiterOptions && limiterOptions.name === undefined) {
      throw badOption('name', undefined, `a name, since ${String(context.name)} is private`)
    }
    // A class has no name yet while its methods are decorated.
    const calls = new LimitedCalls(options, (instance): Limiter => {
      const name = limiterOptions?.name ?? nameFor(instance, context.name, limited)
      return new Limiter({ ...limiterOptions, name })
    })
    const limited: Method<Args, This> = calls.around(method)
    if (limiterOptions && limiterOptions.name === undefined) {
      context.addInitializer(function () {
        calls.limiterOf(this)
      })
    } else calls.limiterOf(undefined)
    return limited
  }

  function decorateLegacy(target: object, name: string | symbol, descriptor: PropertyDescriptor): void {
    if (typeof descriptor.value !== 'function') throw badOption('@rateLimited', name, 'a method to stand on')
    const given = limiterOptions?.name ?? nameOf(target, name)
    const calls = new LimitedCalls(options, () => new Limiter({ ...limiterOptions, name: given }))
    calls.limiterOf(target)
    descriptor.value = calls.around(descriptor.value)
  }

  return ((...args: [never, never, PropertyDescriptor?]) =>
    args[2] ? decorateLegacy(args[0], args[1], args[2]) : decorate(args[0], args[1])) as RateLimitedDecorator<
    Args,
    This
  >
}

/** The calls of one method, and what they are counted in. */
class LimitedCalls<Args extends unknown[], This> {
  readonly #options: RateLimitedOptions<Args, This>
  readonly #make: (instance: unknown) => Limiter
  readonly #departures = new Departures()
  #limiter: Limiter | undefined

  /** @param make the limiter, unless the options bring one, with the first instance of the class */
  constructor(options: RateLimitedOptions<Args, This>, make: (instance: unknown) => Limiter) {
    this.#options = options
    this.#make = make
    this.#limiter = options.limiter
  }

  limiterOf(instance: unknown): Limiter {
    this.#limiter ??= this.#make(instance)
    return this.#limiter
  }

  around(method: Method<Args, This>): Method<Args, This> {
    const calls = this
    const { onLimited } = this.#options
    return async function limited(this: This, ...args) {
      const limiter = calls.limiterOf(this)
      const decision = await limiter.consume(await calls.#requestOf(this, args as unknown as Args))
      if (decision.delayMs > 0) await calls.#departures.wait(decision.delayMs).departed
      if (decision.allowed) return method.apply(this, args)
      if (onLimited) return onLimited.call(this, decision, ...(args as unknown as Args))
      throw deniedError(limiter.name, decision)
    }
  }

  async #requestOf(instance: This, args: Args): Promise<LimitRequest> {
    const { key, cost, plan } = this.#options
    const request: LimitRequest = { key: await key.apply(instance, args) }
    if (plan !== undefined)
      request.plan = typeof plan === 'function' ? await plan.apply(instance, args) : plan
    // Nothing given back is a mistake, and must not read as the default.
    if (cost !== undefined) {
      request.cost = typeof cost === 'function' ? ((await cost.apply(instance, args)) ?? Number.NaN) : cost
    }
    return request
  }
}

/** Checks the options; returns those of the limiter to make, undefined where one is given. */
function checkOptions<Args extends unknown[], This>(
  options: RateLimitedOptions<Args, This>,
): (LimiterOptions & Partial<Policy>) | undefined {
  if (typeof options !== 'object' || options === null) {
    throw badOption('options', options, 'an object such as { limit: 10, window: "1m", key: (id) => id }')
  }
  const { limiter, key, cost, plan, onLimited } = options
  if (typeof key !== 'function') throw badOption('key', key, 'a function of the arguments')
  if (onLimited !== undefined && typeof onLimited !== 'function') {
    throw badOption('onLimited', onLimited, 'a function')
  }
  if (cost !== undefined && typeof cost !== 'function' && !isLimit(cost)) {
    throw badOption('cost', cost, 'a whole number from 0 to 1,000,000,000, or a function of the arguments')
  }
  if (limiter !== undefined) {
    if (!(limiter instanceof Limiter)) throw badOption('limiter', limiter, 'a Limiter')
    refuseUnknownOptions('rateLimited({ limiter })', options, ownOptions)
    checkPlans(limiter, plan)
    return undefined
  }
  refuseUnknownOptions('rateLimited()', options, [...ownOptions, ...allLimiterOptions])
  const limiterOptions: LimiterOptions & Partial<Policy> = pickOptions(options, allLimiterOptions)
  // Now rather than with the limiter, so that a mistake shows where the class is defined.
  checkPlans(new PolicyChoice('', resolveLimiterOptions(limiterOptions), false), plan)
  return limiterOptions
}

/** The name for a method of the class that defines it, whichever class inherits it. */
function nameFor(instance: unknown, name: string | symbol, method: unknown): string {
  const owners: object[] = []
  for (let owner = instance as object; owner; owner = Object.getPrototypeOf(owner)) {
    if (Object.hasOwn(owner, name)) owners.push(owner)
  }
  const own = (owner: object): unknown => Object.getOwnPropertyDescriptor(owner, name)?.value
  const owner = owners.find((of) => own(of) === method) ?? (owners.length === 1 ? owners[0] : undefined)
  if (!owner)
    throw badOption('name', undefined, `a name, since it cannot be told whose ${String(name)} this is`)
  return nameOf(owner, name)
}

function nameOf(owner: object, name: string | symbol): string {
  const { name: className } = typeof owner === 'function' ? owner : owner.constructor
  return `${className}.${String(name)}`
}

const reasons: Partial<Record<Reason, string>> = {
  cost: 'since it costs more than can ever pass',
  blocked: 'since its key is blocked',
  'store-error': 'since it could not be counted',
}

function deniedError(limiter: string, decision: Decision): DeniedError {
  const { reason, retryAfterMs } = decision
  const why = reasons[reason] ?? 'for want of quota'
  const mend = retryAfterMs === Number.POSITIVE_INFINITY ? 'No wait helps' : `Retry after ${retryAfterMs} ms`
  const error = new SluiceError('SLUICE_DENIED', `Limiter ${show(limiter)} denied a call ${why}. ${mend}`)
  return Object.assign(error, { decision }) as DeniedError
}
