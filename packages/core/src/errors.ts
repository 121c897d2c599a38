/** Every code that a {@link SluiceError} or a warning can carry; each has its own section in `docs/errors.md`. */
export const errorCodes = [
  'SLUICE_BAD_CLIENT',
  'SLUICE_BAD_COST',
  'SLUICE_BAD_DURATION',
  'SLUICE_BAD_HOOK',
  'SLUICE_BAD_KEY',
  'SLUICE_BAD_LIMIT',
  'SLUICE_BAD_OPTION',
  'SLUICE_BAD_PLANS_FILE',
  'SLUICE_CASE_SENSITIVE_MOUNT',
  'SLUICE_CLOSED',
  'SLUICE_CLOUDFLARE_BINDING',
  'SLUICE_CROSS_SLOT_QUEUE',
  'SLUICE_DENIED',
  'SLUICE_DUPLICATE_NAME',
  'SLUICE_DUPLICATE_POLICY',
  'SLUICE_FEED_IGNORED',
  'SLUICE_FEED_SIGNATURE',
  'SLUICE_FEED_UNREACHABLE',
  'SLUICE_LONG_QUEUE',
  'SLUICE_MADE_IN_HANDLER',
  'SLUICE_MEMORY_FULL',
  'SLUICE_MEMORY_PER_WORKER',
  'SLUICE_MISSING_PEER',
  'SLUICE_NODES_UNKNOWN',
  'SLUICE_NO_ADDRESS',
  'SLUICE_REDIS_CLUSTER',
  'SLUICE_REDIS_EVICTION',
  'SLUICE_REDIS_REPLICA',
  'SLUICE_REDIS_SCRIPTS',
  'SLUICE_REDIS_UNCHECKED',
  'SLUICE_REDIS_VERSION',
  'SLUICE_REQUEST_FUNCTION',
  'SLUICE_STORE_DOWN',
  'SLUICE_STORE_FAILED',
  'SLUICE_STORE_TIMEOUT',
  'SLUICE_TRUSTS_EVERY_PROXY',
  'SLUICE_UNKNOWN_OPTION',
  'SLUICE_UNKNOWN_PLAN',
  'SLUICE_UNTRUSTED_FORWARDED_HEADER',
] as const

/** One of {@link errorCodes}. */
export type ErrorCode = (typeof errorCodes)[number]

const brand = Symbol.for('sluice.error')

/** What a {@link SluiceError} can carry beside its code and message. */
export interface SluiceErrorOptions {
  /** The error behind this one. */
  cause?: unknown
  /** See {@link SluiceError.path}. */
  path?: readonly (string | number)[]
}

/**
 * The one error class of Sluice: a mistake in the configuration, a bad value from a function of the request, or a
 * store that did not answer. Being limited is no error but a {@link Decision} with `allowed: false`, except to the caller
 * of a method under `@rateLimited`.
 */
export class SluiceError extends Error {
  /** What went wrong, stable across versions. */
  readonly code: ErrorCode
  /**
   * Where in the options the mistake is: `['pro', 1, 'limit']` for the limit of the second policy of plan `pro`.
   * Empty when it is in no option.
   */
  readonly path: readonly (string | number)[]

  constructor(code: ErrorCode, message: string, options: SluiceErrorOptions = {}) {
    super(`${message} (${code})`, 'cause' in options ? { cause: options.cause } : undefined)
    this.name = 'SluiceError'
    this.code = code
    this.path = options.path ?? []
    Object.defineProperty(this, brand, { value: true })
  }

  /** Recognises errors made by another copy of this package too (a program may load both its ESM and its CJS build). */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[brand] === true
  }
}

/** The message of an error without the code at its end, to be part of another message. */
export function withoutCode(error: SluiceError): string {
  return error.message.slice(0, -` (${error.code})`.length)
}

/** Runs what reads a part of the options: a mistake in it then says where it is, in its message and its path. */
export function reading<T>(where: string, path: SluiceError['path'], read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error
    const message = `${where}: ${withoutCode(error)}`
    throw new SluiceError(error.code, message, { cause: error, path: [...path, ...error.path] })
  }
}

/** Writes a value the way an error message shows it: short, quoted where it is text, never throwing. */
export function show(value: unknown): string {
  // As JSON, so that no line break or escape code of a client's reaches a log.
  if (typeof value === 'string') return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value)
  if (value instanceof Error) return show(value.message)
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'function') return `function ${value.name || '(anonymous)'}`
  if (Array.isArray(value)) return `an array of ${value.length}`
  if (typeof value === 'object' && value !== null)
    return `an object (${Object.keys(value).slice(0, 5).join(', ')})`
  return String(value)
}

/** The error for an option whose value cannot be used; `mend` completes the sentence "Expected …". */
export function badOption(option: string, value: unknown, mend: string): SluiceError {
  const message = `Option \`${option}\` is ${show(value)}. Expected ${mend}.`
  return new SluiceError('SLUICE_BAD_OPTION', message, { path: [option] })
}

/** The error of a call whose budget is spent. */
export function storeTimeout(timeoutMs: number): SluiceError {
  return new SluiceError('SLUICE_STORE_TIMEOUT', `The store did not answer within ${timeoutMs} ms`)
}

/** Refuses option names that Sluice does not know: a misspelt `limt` must not become "no limit". */
export function refuseUnknownOptions(what: string, options: object, known: readonly string[]): void {
  for (const option of Object.keys(options)) {
    if (!known.includes(option)) {
      throw new SluiceError(
        'SLUICE_UNKNOWN_OPTION',
        `Unknown option \`${option}\` in ${what}. Known options: ${known.join(', ')}.`,
        { path: [option] },
      )
    }
  }
}
