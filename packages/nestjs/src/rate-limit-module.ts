import {
  type DynamicModule,
  type FactoryProvider,
  type InjectionToken,
  Module,
  type ModuleMetadata,
  type Provider,
  Scope,
} from '@nestjs/common'
import { APP_FILTER, DiscoveryModule, DiscoveryService, MetadataScanner } from '@nestjs/core'
import { Limiter } from '@sluice/core'
import type { RateLimitModuleOptions } from './options.js'
import { RateLimitFilter } from './rate-limit-filter.js'
import { RateLimitGuard } from './rate-limit-guard.js'
import { RateLimits } from './rate-limits.js'

const optionsToken = 'sluice:rate-limit-options'
/** Token of a provider for the option `key` of all limits that have none of their own. */
export const RATE_LIMIT_KEY = 'sluice:rate-limit-key'
/** Token of a provider for the option `plan` of all limits with plans that have none of their own. */
export const RATE_LIMIT_PLAN = 'sluice:rate-limit-plan'
/** Token of a provider for the option `onLimited` of all limits that have no reply of their own. */
export const RATE_LIMIT_REPLY = 'sluice:rate-limit-reply'

/** What a module brings beside its options. */
export interface RateLimitModuleExtras {
  /** Modules whose exports its providers need. */
  imports?: NonNullable<ModuleMetadata['imports']>
  /** Such as those of `RATE_LIMIT_KEY`, `RATE_LIMIT_PLAN` and `RATE_LIMIT_REPLY`, which override the options. */
  providers?: readonly Provider[]
}

/** Options of {@link RateLimitModule.forRootAsync}. */
export interface RateLimitModuleAsyncOptions extends RateLimitModuleExtras {
  /** What the factory is called with. */
  inject?: FactoryProvider['inject']
  /** Makes the options, now or later. */
  useFactory: FactoryProvider<RateLimitModuleOptions>['useFactory']
}

/**
 * Holds all limits of an application, and makes their limiters. Imported once, in the root module; what it exports is
 * there in all: `RateLimitGuard`, `RateLimits`, and `Limiter`, the one of its own limits.
 *
 * Without limits of its own, only what has `@RateLimit` is limited. Decorators and groups inherit its options `store`,
 * `timeoutMs`, `onStoreError`, `nodes`, `denyStaleMs`, `onEvent`, `logger`, `key`, `preflight`, `headers`, `legacyReset`,
 * `retryJitterMs`, and `onLimited` or `message` and `statusCode`; with plans also `plan`, `defaultPlan` and
 * `onPlanError`. Without a `store` they all count in one memory. Closing the application closes the limiters made here,
 * and neither a given `limiter` nor `store`.
 * @example
 * @Module({
 *   imports: [RateLimitModule.forRoot({ limit: 100, window: '1m' })],
 *   providers: [{ provide: APP_GUARD, useClass: RateLimitGuard }],
 * })
 * export class AppModule {}
 */
@Module({})
// biome-ignore lint/complexity/noStaticOnlyClass: a dynamic module of NestJS is made by static methods
export class RateLimitModule {
  /** The application does not start with options that cannot be used: it throws a SluiceError. */
  static forRoot(options: RateLimitModuleOptions, extras: RateLimitModuleExtras = {}): DynamicModule {
    return define({ provide: optionsToken, useValue: options }, extras)
  }

  /** The same with options that are made of other providers. */
  static forRootAsync(options: RateLimitModuleAsyncOptions): DynamicModule {
    const { inject = [], useFactory } = options
    return define({ provide: optionsToken, inject, useFactory }, options)
  }
}

function define(options: Provider, { imports = [], providers = [] }: RateLimitModuleExtras): DynamicModule {
  const optional = (token: InjectionToken) => ({ token, optional: true })
  const limits: FactoryProvider<RateLimits> = {
    provide: RateLimits,
    inject: [
      optionsToken,
      DiscoveryService,
      MetadataScanner,
      ...[RATE_LIMIT_KEY, RATE_LIMIT_PLAN, RATE_LIMIT_REPLY].map(optional),
    ],
    useFactory(options, discovery, scanner, key, plan, onLimited) {
      const given = Object.entries({ key, plan, onLimited }).filter(([, value]) => value !== undefined)
      return new RateLimits(options, Object.fromEntries(given), discovery, scanner)
    },
  }
  const limiter: FactoryProvider<Limiter> = {
    provide: Limiter,
    inject: [RateLimits],
    // Made when it is injected, since a module without limits of its own has none.
    scope: Scope.TRANSIENT,
    useFactory: (all: RateLimits) => all.limiter(),
  }
  return {
    module: RateLimitModule,
    global: true,
    imports: [DiscoveryModule, ...imports],
    providers: [
      ...providers,
      options,
      limits,
      limiter,
      RateLimitGuard,
      { provide: APP_FILTER, useClass: RateLimitFilter },
    ],
    exports: [RateLimits, Limiter, RateLimitGuard],
  }
}
