import type { OnApplicationShutdown, OnModuleInit } from '@nestjs/common'
import type { DiscoveryService, MetadataScanner } from '@nestjs/core'
import {
  badOption,
  findGroup,
  type Limiter,
  MemoryStore,
  reading,
  type Store,
  show,
  withName,
} from '@sluice/core'
import { isStated, type Statements, statementsOf } from './decorators.js'
import { classNameOf, type Handler, type HandlerClass, handlerNameOf } from './handler-name.js'
import { type EnforcedLimit, Limit } from './limit.js'
import {
  inherit,
  ownOptions,
  type RateLimitModuleOptions,
  type RateLimitOptions,
  type RateLimitStatement,
  refuseOwnOptions,
  statesLimits,
} from './options.js'

/** All limiters of an application, made when it starts: those of the module, of its groups, and of decorators. */
export class RateLimits implements OnModuleInit, OnApplicationShutdown {
  readonly #defaults: RateLimitOptions
  readonly #ownStore: Store | undefined
  readonly #discovery: DiscoveryService
  readonly #scanner: MetadataScanner
  readonly #limits: Limit[] = []
  readonly #module: Limit | undefined
  readonly #groups = new Map<string, Limit>()
  /** The limits that a decorator states, by the name that they take from where it stands. */
  readonly #stated = new Map<RateLimitStatement, Map<string, Limit>>()
  readonly #handlers = new Map<HandlerClass, Map<Handler, readonly EnforcedLimit[]>>()

  /**
   * @param overrides options of providers
   * @throws SluiceError with the option, its value and what is expected
   */
  constructor(
    options: RateLimitModuleOptions,
    overrides: Pick<RateLimitOptions, 'key' | 'plan' | 'onLimited'>,
    discovery: DiscoveryService,
    scanner: MetadataScanner,
  ) {
    this.#discovery = discovery
    this.#scanner = scanner
    if (typeof options !== 'object' || options === null) {
      throw badOption('options', options, 'an object such as { limit: 100, window: "1m" }')
    }
    const { groups = {}, ...own } = { ...options, ...overrides }
    if (typeof groups !== 'object' || groups === null) {
      throw badOption('groups', groups, 'an object such as { login: { limit: 5, window: "15m" } }')
    }
    this.#ownStore = own.store === undefined ? new MemoryStore() : undefined
    this.#defaults = { store: this.#ownStore, ...own }
    if (statesLimits(own)) this.#module = this.#make(ownOptions(this.#defaults))
    else refuseOwnOptions(own)
    for (const [name, group] of Object.entries(groups)) {
      const made = reading(`Group ${show(name)}`, [], () =>
        this.#make(withName(inherit(group, this.#defaults), name)),
      )
      this.#groups.set(name, made)
    }
  }

  /**
   * The limiter of a name, for everything that is not a call: `reset`, `block`, `peek`, or `consume` by hand. Those of
   * decorators are called by method and route (`POST /login`), class and method (`Chat.send`), or class; they are there
   * once the module has started. Without a name: the module's own.
   * @throws SluiceError when there is none
   */
  limiter(name?: string): Limiter {
    const found = name === undefined ? this.#module : this.#limits.find((limit) => limit.name === name)
    if (found) return found.limiter
    if (name === undefined) {
      throw badOption('limit', undefined, 'limits in the options of RateLimitModule, which have a limiter')
    }
    throw badOption('name', name, `one of ${this.#limits.map((limit) => limit.name).join(', ')}`)
  }

  /** What a guard enforces for a method of a class: each is one charge, in this order. */
  of(type: HandlerClass, handler: Handler): readonly EnforcedLimit[] {
    const handlers = this.#handlers.get(type) ?? new Map<Handler, readonly EnforcedLimit[]>()
    this.#handlers.set(type, handlers)
    let limits = handlers.get(handler)
    if (!limits) {
      limits = this.#compile(type, handler)
      handlers.set(handler, limits)
    }
    return limits
  }

  /** Reads every decorator, so that mistakes show at the start. */
  onModuleInit(): void {
    const wrappers = [...this.#discovery.getControllers(), ...this.#discovery.getProviders()]
    for (const { metatype, inject } of wrappers) {
      const type = metatype as HandlerClass | null
      // A factory is no class.
      if (!type?.prototype || inject) continue
      for (const name of this.#scanner.getAllMethodNames(type.prototype)) {
        const handler: Handler = type.prototype[name as never]
        if (isStated(type) || isStated(handler)) this.of(type, handler)
      }
    }
  }

  /** Closes the limiters that were made here, once no call is left. */
  async onApplicationShutdown(): Promise<void> {
    await Promise.all(this.#limits.map((limit) => limit.close()))
    await this.#ownStore?.close()
  }

  #compile(type: HandlerClass, handler: Handler): readonly EnforcedLimit[] {
    const ofClass = statementsOf(type)
    const ofMethod = statementsOf(handler)
    const where = `${type.name}.${handler.name}`
    const classLimits = reading(type.name, [], () => this.#statedBy(ofClass, classNameOf(type)))
    const methodLimits = reading(where, [], () => this.#statedBy(ofMethod, handlerNameOf(type, handler)))
    const moduleLimits = this.#module ? [this.#module] : []
    reading(type.name, [], () => checkSkip(ofClass, [...moduleLimits, ...classLimits]))
    reading(where, [], () => checkSkip(ofMethod, [...moduleLimits, ...classLimits, ...methodLimits]))
    if (ofMethod.skip === 'all') return []
    const groups = [...this.#groups.values()]
    const replaced = methodLimits
      .filter((limit) => !groups.includes(limit))
      .flatMap((limit) => [...limit.policyNames])
    // A group of class and method is one.
    const classOnly = classLimits.filter((limit) => !methodLimits.includes(limit))
    const ofBoth = ofClass.skip === 'all' ? 'all' : [...ofClass.skip, ...ofMethod.skip]
    const inherited =
      ofBoth === 'all' ? [] : [...left(moduleLimits, ofBoth), ...left(classOnly, [...ofBoth, ...replaced])]
    return [...new Set([...inherited, ...left(methodLimits, ofMethod.skip)])]
  }

  #statedBy({ limits }: Statements, name: string): readonly Limit[] {
    return limits.map((statement) => {
      const { group, ...options } = statement
      return group === undefined
        ? this.#own(statement, name)
        : findGroup(this.#groups, group, options, 'module')
    })
  }

  /** The limit that a decorator states; the same for all that inherit it under one name. */
  #own(statement: RateLimitStatement, name: string): Limit {
    const options = withName(inherit(statement as RateLimitOptions, this.#defaults), name)
    const byName = this.#stated.get(statement) ?? new Map<string, Limit>()
    this.#stated.set(statement, byName)
    const key = options.name ?? ''
    const limit = byName.get(key) ?? this.#make(options)
    byName.set(key, limit)
    return limit
  }

  #make(options: RateLimitOptions): Limit {
    const limit = new Limit(options)
    this.#limits.push(limit)
    return limit
  }
}

function left(limits: readonly Limit[], without: readonly string[]): EnforcedLimit[] {
  return limits.map((limit) => limit.without(without)).filter((enforced) => enforced !== undefined)
}

/** A name that takes nothing away is a mistake, and must not read as if it did. */
function checkSkip({ skip }: Statements, limits: readonly Limit[]): void {
  const unknown = skip === 'all' ? undefined : skip.find((name) => !limits.some((limit) => limit.has(name)))
  if (unknown === undefined) return
  const known = limits.flatMap((limit) => [...new Set([limit.name, ...limit.policyNames])])
  throw badOption(
    '@SkipRateLimit',
    unknown,
    `the name of a limit that applies here (${known.join(', ') || 'none does'})`,
  )
}
